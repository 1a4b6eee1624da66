/// Read once for all files of this folder (CMake: tidemark_precompile). Never included by hand.
#pragma once

#include <boost/json.hpp>

#include "daemon/coordinators.h"
#include "tests/support/daemon/test_broker.h"
#include "tests/support/precompiled/precompiled.h"
