/// Read once for all files of this folder (CMake: tidemark_precompile). Never included by hand.
#pragma once

#include "io/faulty_file_system.h"
#include "storage/log_manager.h"
#include "tests/support/precompiled/precompiled.h"
#include "tests/support/storage_log.h"
