#include "algorithms/job/job_event_wire.h"

#include <cctype>
#include <cmath>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/wire/codec.h"

#include <capnp/dynamic.h>

namespace paceline::job {
namespace {

using capnp::DynamicList;
using capnp::DynamicStruct;
using capnp::DynamicValue;
using nlohmann::json;

/// medianStepS -> median_step_s
std::string underscored(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

std::string name_of(const capnp::StructSchema::Field& field) {
  return underscored(wire::view(field.getProto().getName()));
}

json fields_of(const DynamicStruct::Reader& fields);

json value_of(const DynamicValue::Reader& value) {
  switch (value.getType()) {
    case DynamicValue::BOOL: return value.as<bool>();
    case DynamicValue::INT: return value.as<std::int64_t>();
    case DynamicValue::UINT: return value.as<std::uint64_t>();
    case DynamicValue::FLOAT: return std::isfinite(value.as<double>()) ? json(value.as<double>()) : json();
    case DynamicValue::TEXT: return wire::text(value.as<capnp::Text>());
    case DynamicValue::STRUCT: return fields_of(value.as<DynamicStruct>());
    case DynamicValue::LIST: {
      json list = json::array();
      for (const auto& each : value.as<DynamicList>()) list.push_back(value_of(each));
      return list;
    }
    default: return {};
  }
}

json fields_of(const DynamicStruct::Reader& fields) {
  json object = json::object();
  for (const auto field : fields.getSchema().getNonUnionFields())
    if (fields.has(field)) object[name_of(field)] = value_of(fields.get(field));
  return object;
}

/// People read one object.
json flat(json progress) {
  const auto training = progress.find("training");
  if (training == progress.end()) return progress;
  const json inner = std::move(*training);
  progress.erase(training);
  progress.update(inner);
  return progress;
}

}  // namespace

json to_json(const wire::Progress::Reader& progress) { return flat(fields_of(progress)); }

json to_json(const wire::JobEvent::Reader& event) {
  const DynamicStruct::Reader dynamic = event;
  json object = json::object();
  KJ_IF_MAYBE (which, dynamic.which()) {
    object = flat(fields_of(dynamic.get(*which).as<DynamicStruct>()));
    object["event"] = name_of(*which);
  }
  return object;
}

}  // namespace paceline::job
