#include "algorithms/cluster/training/shared_objects.h"

#include "runtime/base/json.h"

#include <utility>

namespace paceline::cluster {

void SharedObjects::open(WorkerId worker, const std::string& key, std::uint64_t size) {
  const auto refuse = [&](const std::string& text) { answer_(worker, {{"error", text}}, {}); };
  if (size == 0 || size > kBytesMax) return refuse("a shared object of " + std::to_string(size) + " bytes is refused");
  const auto it = objects_.find(key);
  if (it == objects_.end()) {
    auto created = memory::SharedObject::create(size);
    if (!created) return refuse(created.error().text);
    Object object{std::make_shared<memory::SharedObject>(std::move(*created)), size, false, {}};
    answer_(worker, {{"kind", "object"}, {"fill", true}}, {object.object->fd()});
    objects_.emplace(key, std::move(object));
    return;
  }
  if (it->second.size != size) return refuse("workers read data sets of different sizes under the name " + key);
  if (!it->second.sealed) {
    it->second.waiting.push_back(worker);
    return;
  }
  answer_(worker, {{"kind", "object"}, {"fill", false}}, {it->second.object->fd()});
}

void SharedObjects::seal(const std::string& key) {
  const auto it = objects_.find(key);
  if (it == objects_.end() || !memory::SharedObject::is_sealed(it->second.object->fd())) return;
  it->second.sealed = true;
  for (const WorkerId worker : std::exchange(it->second.waiting, {}))
    answer_(worker, {{"kind", "object"}, {"fill", false}}, {it->second.object->fd()});
}

}  // namespace paceline::cluster
