#include "io/priority.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace tidemark::io {

bool set_idle_priority() noexcept {
    // glibc has no wrapper; the numbers are the kernel's (linux/ioprio.h).
    constexpr int who_process = 1, class_idle = 3, class_shift = 13;
    return ::syscall(SYS_ioprio_set, who_process, 0, class_idle << class_shift) == 0;
}

}  // namespace tidemark::io
