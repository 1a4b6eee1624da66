/// Read once for all files of this folder (CMake: tidemark_precompile). Never included by hand.
#pragma once

#include "base/precompiled.h"
#include "storage/log.h"
#include "storage/segment.h"
