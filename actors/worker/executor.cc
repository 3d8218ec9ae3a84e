#include "actors/worker/executor.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <utility>

#include "actors/invoke.h"
#include "runtime/base/readable.h"
#include "runtime/base/steady_now.h"

namespace paceline::worker {
namespace {

std::string demangled(const std::type_info* type) {
  if (type == nullptr) return "an unknown exception";
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type->name(), nullptr, nullptr, &status),
                                                   &std::free);
  return status == 0 && name ? name.get() : type->name();
}

/// In a catch block: type and text of what was thrown.
std::string thrown() {
  auto type = demangled(abi::__cxa_current_exception_type());
  try {
    throw;
  } catch (const std::exception& error) {
    return type + ": " + readable(error.what());
  } catch (const std::string& text) {
    return "std::string: " + readable(text);
  } catch (const char* text) {
    return text == nullptr ? type : type + ": " + readable(text);
  } catch (...) {
    return type;
  }
}

}  // namespace

Executor::Answer Executor::run(actors::Work work) {
  if (auto* create = std::get_if<actors::CreateActor>(&work)) return construct(std::move(*create));
  return call(std::move(std::get<actors::Call>(work)));
}

Result<void> Executor::invoke(const actors::FunctionRef& function, std::vector<Bytes> arguments, void* object,
                              std::shared_ptr<void>* created, Bytes* result) {
  auto address = actors::resolve(function);
  if (!address) return tl::unexpected(std::move(address).error());
  actors::Invocation invocation{object, arguments, {}, {}, function.build};
  try {
    PACELINE_TRY(reinterpret_cast<actors::Thunk>(*address)(invocation));
  } catch (abi::__forced_unwind&) {
    throw;  // A thread's cancellation is no exception of the user's.
  } catch (...) {
    return fail(ErrorKind::invalid, thrown());
  }
  if (created != nullptr) *created = std::move(invocation.created);
  if (result != nullptr) *result = std::move(invocation.result);
  return {};
}

actors::ActorReady Executor::construct(actors::CreateActor create) {
  actors::ActorReady ready{create.actor, create.owner, false, {}};
  if (instance_) {
    ready.error = {ErrorKind::internal, "a second actor was sent to " + where_};
    return ready;
  }
  actor_ = create.actor;
  name_ = create.name;
  const auto done = invoke(create.function, std::move(create.arguments), nullptr, &instance_, nullptr);
  if (!done) {
    ready.error = {done.error().kind, done.error().text + " (in the constructor of actor " +
                                          (name_.empty() ? to_string(actor_) : "'" + name_ + "'") + ", " + where_ +
                                          ")"};
  }
  return ready;
}

actors::CallResult Executor::call(actors::Call call) {
  actors::CallResult answer{call.task, call.owner, Bytes{}, call.by_line, false, {}};
  if (call.actor.value != 0 && (!instance_ || call.actor != actor_)) {
    answer.value = fail(ErrorKind::not_found, "actor " + to_string(call.actor) + " is not on " + where_);
    return answer;
  }
  Bytes result;
  const Instant began = steady_now();
  const auto done = invoke(call.function, std::move(call.arguments), call.actor.value != 0 ? instance_.get() : nullptr,
                           nullptr, &result);
  answer.ran = steady_now() - began;
  if (done && result.size() > actors::kResultBytesMax) {
    answer.value = fail(ErrorKind::invalid, "the result takes " + std::to_string(result.size() >> 20) +
                                                " MiB; at most " + std::to_string(actors::kResultBytesMax >> 20) +
                                                " MiB can come back by value: give it in parts");
  } else if (done) {
    answer.value = std::move(result);
  } else {
    const std::string who = call.actor.value == 0 ? ""
                            : name_.empty()       ? "actor " + to_string(actor_) + ", "
                                                  : "actor '" + name_ + "', ";
    answer.value = fail(done.error().kind, done.error().text + " (" + who + where_ + ")");
  }
  return answer;
}

}  // namespace paceline::worker
