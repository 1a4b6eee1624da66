/// Read once for all files of this folder (CMake: tidemark_precompile). Never included by hand.
#pragma once

#include "base/precompiled.h"
#include "coordinator/group/group_machine.h"
#include "coordinator/runtime.h"
#include "metadata/image.h"
