/// Read once for all files of this folder (CMake: tidemark_precompile). Never included by hand.
#pragma once

#include "base/precompiled.h"
#include "daemon/asio.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
