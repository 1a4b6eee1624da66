/// Read once for the code of all tests without a precompiled.h of their own (CMake: tidemark_precompile). Never included by hand.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/precompiled.h"
