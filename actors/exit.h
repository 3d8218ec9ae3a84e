#pragma once

#include <functional>

namespace paceline {
namespace actors {
/// What exit() does on the calling thread from here on.
void set_exit(std::function<void()> leave);
}  // namespace actors

/// In a method of an actor, on its own thread: when this call has returned and been answered the actor ends. Its
/// destructor runs; calls that have not been answered by then, and later ones, fail as `disconnected`, and it is not
/// started again, whatever its restarts are. Throws TaskError of kind `invalid` elsewhere: in a task, a constructor,
/// `main`, or an actor that runs several calls at a time.
void exit();

}  // namespace paceline
