/// Names for threads, as `top -H`, `perf` and gdb show them.
#pragma once

#include <string>

namespace tidemark {

/// Names the calling thread; the kernel keeps 15 bytes.
void name_this_thread(std::string name);

}  // namespace tidemark
