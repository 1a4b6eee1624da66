/// Read once for all files of this folder (CMake: target_precompile_headers). Never included by hand.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "daemon/asio.h"
