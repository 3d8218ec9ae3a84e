#include "actors/exit.h"

#include <utility>

#include "actors/task_error.h"

namespace paceline {
namespace actors {
namespace {

thread_local std::function<void()> leave_actor;

}  // namespace

void set_exit(std::function<void()> leave) { leave_actor = std::move(leave); }

}  // namespace actors

void exit() {
  if (!actors::leave_actor)
    throw TaskError(
        {ErrorKind::invalid,
         "paceline::exit() outside of the methods of an actor that runs one call at a time: return from a task "
         "or from main, throw from a constructor"});
  actors::leave_actor();
}

}  // namespace paceline
