#include "runtime/store/named_objects.h"

#include <utility>

namespace paceline::store {

Result<std::optional<NamedObjects::Given>> NamedObjects::open(Asker asker, const std::string& name,
                                                              std::uint64_t size) {
  if (size == 0 || size > kBytesMax)
    return fail(ErrorKind::invalid, "a shared object of " + std::to_string(size) + " bytes is refused");
  const auto it = objects_.find(name);
  if (it == objects_.end()) {
    auto created = SharedObject::create(size);
    if (!created) return tl::unexpected(created.error());
    const auto& made = objects_.emplace(name, Object{*std::move(created)}).first->second;
    return Given{asker, made.object.fd(), true};
  }
  Object& known = it->second;
  if (known.object.size() != size)
    return fail(ErrorKind::invalid, "workers read data sets of different sizes under the name " + name);
  if (known.sealed) return Given{asker, known.object.fd()};
  known.waiting.push_back(asker);
  return std::nullopt;
}

std::vector<NamedObjects::Given> NamedObjects::on_sealed(const std::string& name) {
  std::vector<Given> given;
  const auto it = objects_.find(name);
  if (it == objects_.end() || !SharedObject::is_sealed(it->second.object.fd())) return given;
  it->second.sealed = true;
  for (const Asker& asker : std::exchange(it->second.waiting, {})) given.push_back({asker, it->second.object.fd()});
  return given;
}

}  // namespace paceline::store
