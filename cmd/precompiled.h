/// Read once for all files of this folder (CMake: tidemark_precompile). Never included by hand.
#pragma once

#include <boost/json.hpp>

#include "base/precompiled.h"
#include "config/config.h"
#include "storage/log_manager.h"
