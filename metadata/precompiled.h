/// Read once for all files of this folder (CMake: tidemark_precompile). Never included by hand.
#pragma once

#include "base/precompiled.h"
#include "metadata/effective_config.h"
#include "metadata/image.h"
