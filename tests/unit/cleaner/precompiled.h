/// Read once for all files of this folder (CMake: tidemark_precompile). Never included by hand.
#pragma once

#include "cleaner/cleaning.h"
#include "storage/segment.h"
#include "tests/support/precompiled/precompiled.h"
#include "tests/support/log/test_log.h"
