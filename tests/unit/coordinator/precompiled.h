/// Read once for all files of this folder (CMake: tidemark_precompile). Never included by hand.
#pragma once

#include <boost/json.hpp>

#include "tests/support/coordinator/test_groups.h"
#include "tests/support/precompiled/precompiled.h"
#include "tests/unit/coordinator/consumer_fixture.h"
