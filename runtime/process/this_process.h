#pragma once

#include <sys/types.h>

namespace paceline::process {

/// getpid() without a system call: for what must not be used by a forked copy of the process that made it.
pid_t this_process();

}  // namespace paceline::process
