#pragma once

#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "actors/concurrency.h"
#include "actors/submit.h"
#include "runtime/base/demangled.h"

namespace paceline {

/// How long an actor lives.
enum class Lifetime {
  owned,     ///< Until its last handle in the process that created it goes, or that process ends.
  detached,  ///< Until it dies, somebody kills it, or its node or cluster ends. It needs a name.
};

/// What an actor is called, and where and how long it lives.
struct ActorOptions {
  std::string name{};  ///< Of one living actor in the cluster at a time: get_actor() finds it by its name.
  int count = 1;       ///< For create_many.
  int node = -1;       ///< Where it lives; -1: nodes in turn.
  /// How often it is started again, constructed from the same arguments, when its process dies (a crash, a kill, an
  /// exit; not with its last handle or its node); -1: always. Its state is lost, but for what is durable. Calls that
  /// the dead process had taken fail as `disconnected`; those that wait go to the next one.
  int restarts = 0;
  /// How often a call that the dead process had taken is sent again instead, before later ones: it may run twice,
  /// unless the actor has durable state. -1: always.
  int call_retries = 0;
  bool get_if_exists = false;  ///< A living actor of that name will do, wherever it lives: nothing is created then.
  Lifetime lifetime = Lifetime::owned;  ///< How long it lives.
  /// Calls that run at a time, each on a thread of its own: from 2 on, the actor's data need locks. They begin in each
  /// caller's order.
  int concurrency = 1;
  std::vector<ConcurrencyGroup> groups{};  ///< Further threads, for the calls made through Handle::in_group().
};

namespace actors {
/// Ends the actor when the last handle that owns it goes.
struct Ownership {
  Ownership(std::shared_ptr<Outbox> through, ActorId id) : outbox(std::move(through)), actor(id) {}
  ~Ownership() { outbox->release(actor); }
  Ownership(const Ownership&) = delete;
  Ownership& operator=(const Ownership&) = delete;
  const std::shared_ptr<Outbox> outbox;
  const ActorId actor;
};
}  // namespace actors

template <class T>
class GroupHandle;

/// Reaches an actor of class T. Copies share it; it ends when the last copy in the process that created it goes and the
/// calls made through them have their results, or when that process ends. As an argument a handle travels without
/// owning. Calls of one process run in the order in which they were made.
template <class T>
class Handle {
 public:
  Handle() = default;
  explicit Handle(std::shared_ptr<actors::Ownership> owner) : owner_(std::move(owner)), actor_(owner_->actor) {}
  /// The actor of this id, not owned.
  explicit Handle(ActorId actor) : actor_(actor) {}

  /// Calls `method` in the actor's process; arguments as for async(). What the method throws, and the actor's death,
  /// come from the future's get(). A method that returns a Generator<T> gives a Stream<T> (actors/stream.h).
  template <class Method, class... Args>
  requires(std::is_member_function_pointer_v<Method>) auto call(Method method, Args&&... arguments) const {
    return call_in({}, method, std::forward<Args>(arguments)...);
  }

  /// The same actor: calls through what this gives run on the threads of the concurrency group `name` of its options.
  GroupHandle<T> in_group(std::string name) const { return GroupHandle<T>(*this, std::move(name)); }

  /// The same actor, not owned: neither this handle nor calls through it keep the actor. For calls that its end is to
  /// cut short.
  Handle borrowed() const { return Handle(actor_); }

  /// As status and logs name it; 0: the handle is empty.
  ActorId id() const { return actor_; }
  explicit operator bool() const { return actor_.value != 0; }

  template <class Archive>
  void save(Archive& archive) const {
    archive(actor_.value);
  }
  template <class Archive>
  void load(Archive& archive) {
    owner_.reset();
    archive(actor_.value);
  }

 private:
  template <class>
  friend class GroupHandle;

  template <class Method, class... Args>
  auto call_in(std::string group, Method method, Args&&... arguments) const {
    using Encoded = actors::encoded_t<Method, Args...>;
    using Invoked = actors::MethodResultOf<T, Method, Encoded>;
    static_assert(actors::AllSerialisable<Encoded>::value,
                  "an argument cannot travel: see paceline::Serialisable (give its type a serialize(), pass values, no "
                  "pointers)");
    static_assert(!actors::AllSerialisable<Encoded>::value || !actors::takes_values<Method>() || Invoked::callable,
                  "the arguments of call() do not fit the method's parameters, or it is no method of the actor");
    static_assert(actors::takes_values<Method>(),
                  "a parameter is a non-const reference: nothing comes back through it, return the result instead");
    static_assert(!Invoked::callable || actors::Convertible<Encoded, Args...>::value,
                  "an argument cannot be converted to the method's parameter");
    if constexpr (actors::AllSerialisable<Encoded>::value && Invoked::callable &&
                  actors::Convertible<Encoded, Args...>::value) {
      using R = typename Invoked::type;
      static_assert(actors::gives_serialisable<R>, "the result cannot travel: see paceline::Serialisable");
      if constexpr (actors::gives_serialisable<R>) {
        if (actor_.value == 0) throw TaskError({ErrorKind::invalid, "call() through an empty handle"});
        actors::Call call;
        call.actor = actor_;
        call.group = std::move(group);
        call.function = actors::or_throw(actors::name_of(&actors::run_method<T, Method, Encoded>));
        call.callee = &actors::name_of_method<T>;
        auto name = actors::or_throw(actors::name_of(method));
        if (name.function.build == call.function.build) name.function.build.clear();  // Said once a call.
        std::vector<actors::ArgumentSource> sources;
        sources.emplace_back(actors::to_bytes(name));
        actors::append_sources(sources, static_cast<Encoded*>(nullptr), std::forward<Args>(arguments)...);
        return actors::submitted<R>(call, actors::kStreamAhead, [&](const auto& stream) {
          auto result = actors::process_client().submit(std::move(call), std::move(sources), {}, stream);
          if (owner_) result->hold(owner_);
          return result;
        });
      }
    }
  }

  std::shared_ptr<actors::Ownership> owner_;  ///< Empty: borrowed.
  ActorId actor_;
};

/// A handle whose calls run in one concurrency group of the actor's.
template <class T>
class GroupHandle {
 public:
  GroupHandle(Handle<T> handle, std::string group) : handle_(std::move(handle)), group_(std::move(group)) {}

  /// As Handle::call(). `invalid` where the actor has no such group.
  template <class Method, class... Args>
  requires(std::is_member_function_pointer_v<Method>) auto call(Method method, Args&&... arguments) const {
    return handle_.call_in(group_, method, std::forward<Args>(arguments)...);
  }

 private:
  Handle<T> handle_;
  std::string group_;
};

namespace actors {
template <class T>
std::string type_name() {
  return demangled(typeid(T).name());
}

template <class T, class... Args>
Handle<T> create_called(ActorName name, NodeId node, RestartRule rule, Concurrency concurrency, Args&&... arguments) {
  using Encoded = std::tuple<actors::travels_t<Args>...>;
  static_assert(!(actors::is_future<Args> || ...), "a constructor takes values: pass future.get()");
  static_assert((actors::is_future<Args> || ...) || actors::AllSerialisable<Encoded>::value,
                "an argument cannot travel: see paceline::Serialisable (give its type a serialize(), pass values, no "
                "pointers)");
  static_assert((actors::is_future<Args> || ...) || !actors::AllSerialisable<Encoded>::value ||
                    std::is_constructible_v<T, actors::travels_t<Args>...>,
                "the actor's class has no constructor for these arguments");
  if constexpr (!(actors::is_future<Args> || ...) && actors::AllSerialisable<Encoded>::value &&
                std::is_constructible_v<T, actors::travels_t<Args>...>) {
    auto function = actors::or_throw(actors::name_of(&actors::run_constructor<T, Encoded>));
    std::vector<Bytes> encoded;
    actors::append_bytes(encoded, static_cast<Encoded*>(nullptr), std::forward<Args>(arguments)...);
    auto& client = actors::process_client();
    const auto made = actors::or_throw(
        client.create(std::move(function), std::move(encoded), std::move(name), node, rule, std::move(concurrency)));
    if (!made.owned) return Handle<T>(made.actor);
    return Handle<T>(std::make_shared<actors::Ownership>(client.outbox(), made.actor));
  }
}
}  // namespace actors

/// A new actor: an object of class T in a process of its own, constructed there from `arguments`. Does not wait; what
/// the constructor throws comes from every call's get(). One with a name waits until it has it, and throws TaskError
/// (`invalid`) where another has it, or where the actor that get_if_exists finds is no T. Throws TaskError where there
/// is no cluster. What is detached, or was there already, is not owned by the handle.
template <class T, class... Args>
Handle<T> create(const ActorOptions& options, Args&&... arguments) {
  const actors::NameRule rule{!options.name.empty(), options.get_if_exists, options.lifetime == Lifetime::detached, {}};
  return actors::create_called<T>({options.name, actors::type_name<T>(), rule}, NodeId(options.node),
                                  {options.restarts, options.call_retries}, {options.concurrency, options.groups},
                                  std::forward<Args>(arguments)...);
}

/// The same without options and arguments.
template <class T>
Handle<T> create() {
  return create<T>(ActorOptions{});
}
/// The same without options.
template <class T, class First, class... Args>
requires(!std::is_same_v<std::remove_cvref_t<First>, ActorOptions>) Handle<T> create(First&& first,
                                                                                     Args&&... arguments) {
  return create<T>(ActorOptions{}, std::forward<First>(first), std::forward<Args>(arguments)...);
}

/// `options.count` actors, each constructed from the same arguments and named name-0, name-1, ...
template <class T, class... Args>
std::vector<Handle<T>> create_many(const ActorOptions& options, const Args&... arguments) {
  std::vector<Handle<T>> handles;
  for (int i = 0; i < options.count; ++i) {
    auto one = options;
    if (!one.name.empty()) one.name += "-" + std::to_string(i);
    handles.push_back(create<T>(one, arguments...));
  }
  return handles;
}

}  // namespace paceline
