#pragma once

#include <cstddef>
#include <string>

#include "runtime/base/ids.h"

namespace paceline::actors {

/// What an actor's name is to it.
struct NameRule {
  bool claims = false;         ///< Its own in the cluster: it begins when the head has granted it. Else for people.
  bool get_if_exists = false;  ///< Who has the name already will do.
  bool detached = false;       ///< Outlives its owner.
  ActorId after{};             ///< Has the name, and ends: it is no hindrance. 0: nobody.
  bool operator==(const NameRule&) const = default;
};

/// What an actor that is to be created is called.
struct ActorName {
  std::string text;  ///< May be empty.
  std::string type;  ///< Its class.
  NameRule rule{};
  JobId job{};  ///< That it works for: while that runs, it outlives its owner's node. 0: none.
};
inline constexpr std::size_t kActorNameMax = 255;  ///< Bytes of one that is claimed.

/// A name that an actor has, or is to have, as the agent of its node tells the head.
struct NameClaim {
  ActorId actor;
  std::string name;
  std::string type;   ///< The actor's class.
  std::string owner;  ///< Who has created it.
  NameRule rule{};
};

}  // namespace paceline::actors
