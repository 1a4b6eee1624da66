/// How urgent a thread's reads and writes are to the disk's scheduler.
#pragma once

namespace tidemark::io {

/// The calling thread's disk requests wait for everybody else's (ioprio_set, class idle). False when the system refuses;
/// the thread then works on at its ordinary priority.
bool set_idle_priority() noexcept;

}  // namespace tidemark::io
