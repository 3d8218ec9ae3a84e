#pragma once

#include <string>

#include "actors/handle.h"

namespace paceline {

/// The living actor of this name, wherever in the cluster it lives and whoever created it; not owned. Throws TaskError:
/// `not_found`, with the names that there are, or `invalid` where it is no T.
template <class T>
Handle<T> get_actor(const std::string& name) {
  return Handle<T>(actors::or_throw(actors::process_client().find(name, actors::type_name<T>())));
}

/// Ends an actor at once, whoever owns it: its calls in flight and all later ones fail and say so, and its name is free
/// when this returns. One that is dead already is dead. Throws TaskError where that cannot be known.
template <class T>
void kill(const Handle<T>& actor) {
  if (!actor) throw TaskError({ErrorKind::invalid, "kill() of an empty handle"});
  actors::or_throw(actors::process_client().end(actor.id()));
}

}  // namespace paceline
