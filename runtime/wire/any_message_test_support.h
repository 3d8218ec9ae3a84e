#pragma once

#include <capnp/dynamic.h>
#include <capnp/schema.h>

#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/wire/codec.h"

namespace paceline::wire {

/// Messages of every kind whose fields hold anything that their types allow, often enough what makes sense there: what
/// other messages refer to, and values of the right form.
class AnyMessage {
 public:
  explicit AnyMessage(std::uint64_t seed) : random_(seed) {}

  /// One of `kinds` mostly.
  Frame frame(const std::vector<Envelope::Which>& kinds) {
    Message message;
    const auto fields = capnp::Schema::from<Envelope>().getUnionFields();
    const auto all = static_cast<std::uint16_t>(fields.size());
    const auto kind = kinds.empty() || one_of(10) ? static_cast<std::uint16_t>(below(all))
                                                  : static_cast<std::uint16_t>(kinds[below(kinds.size())]);
    for (const auto field : fields)
      if (field.getProto().getDiscriminantValue() == kind) set(capnp::toDynamic(message.root()), field, 0);
    message.root().setVersion(kProtocolVersion);
    auto frame = message.to_frame();
    if (one_of(20)) frame.at(below(frame.size())) ^= std::byte{static_cast<unsigned char>(1 + below(255))};  // Damaged.
    if (one_of(50)) frame.resize(below(frame.size()));
    return frame;
  }

  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  bool one_of(std::size_t n) { return below(n) == 0; }
  template <class T, std::size_t n>
  T any(const T (&values)[n]) {
    return values[below(n)];
  }

 private:
  std::int64_t number(std::string_view field = {}) {
    if (field == "job" && !one_of(8)) return 1;
    if (field == "size" || field == "elements") return one_of(6) ? INT64_MAX : static_cast<std::int64_t>(below(1000));
    constexpr std::int64_t kSensible[] = {0, 1, 1, 2, 3, 8};
    constexpr std::int64_t kExtreme[] = {-1, 100, 1'000'000, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    return one_of(6) ? any(kExtreme) : any(kSensible);
  }

  double real() {
    constexpr double kReals[] = {
        0, 0.5, 1, -1, 1e18, 1e300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
    return any(kReals);
  }

  nlohmann::json value() {
    switch (below(8)) {
      case 0: return real();
      case 1: return nullptr;
      case 2: return true;
      case 3: return nlohmann::json::array({number(), word()});
      case 4: return nlohmann::json{{"name", word()}, {"direction", word()}};
      case 5: return word();
      default: return number();
    }
  }

  std::string word() {
    constexpr const char* kWords[] = {"",         "one",     "\xff",    "a\xe2\x82", "\x1b[2J",
                                      "driver/1", "agent/0", "worker/", "session/x"};
    return any(kWords);
  }

  std::string peer() {
    constexpr const char* kPeers[] = {"driver/1", "worker/1", "session/1", "agent/0", "agent/1"};
    return any(kPeers);
  }

  std::string text(std::string_view field) {
    if (one_of(12)) return word();
    if (one_of(200)) return std::string(below(100'000), 'x');
    constexpr const char* kVerbs[] = {"status", "submit", "submit",  "stop",   "scale",       "set",         "drain",
                                      "let_go", "close",  "release", "linked", "node_status", "move_places", "left"};
    constexpr const char* kRoles[] = {"agent", "worker", "driver"};
    if (field == "verb") return any(kVerbs);
    if (field == "role") return any(kRoles);
    if (field == "owner" || field == "from" || field == "to") return peer();
    return field == "json" || field == "text" ? object() : word();
  }

  std::string object() {
    constexpr const char* kStrategies[] = {"allreduce",
                                           "local-sgd(period=2)",
                                           "wagma(group=2,sync=2)",
                                           "nonblocking",
                                           "eager-sgd",
                                           "d-psgd",
                                           "sgp",
                                           "ad-psgd",
                                           "server",
                                           "hier-avg",
                                           "nosuch"};
    constexpr const char* kKeys[] = {"job",    "workers",    "strategy",   "label",           "epochs",
                                     "seed",   "accumulate", "updates",    "first",           "evaluate_every",
                                     "reason", "actors",     "tasks",      "node_of",         "jobs",
                                     "target", "metric",     "patience_s", "optimizer_state", "keep_checkpoints",
                                     "ranks",  "begin_with", "minimum",    "vacant"};
    nlohmann::json object{{"job", 1},     {"workers", 2}, {"strategy", any(kStrategies)},
                          {"updates", 8}, {"first", 0},   {"evaluate_every", 4}};
    if (one_of(3)) object = nlohmann::json::object();
    if (one_of(2))
      for (std::size_t i = below(4); i > 0; --i) object[any(kKeys)] = value();
    return json_text(object);
  }

  void fill(capnp::DynamicStruct::Builder builder, int depth) {
    for (const auto field : builder.getSchema().getNonUnionFields()) set(builder, field, depth);
    if (const auto fields = builder.getSchema().getUnionFields(); fields.size() > 0)
      set(builder, fields[static_cast<unsigned>(below(fields.size()))], depth);
  }

  void set(capnp::DynamicStruct::Builder builder, capnp::StructSchema::Field field, int depth) {
    const auto type = field.getType();
    const std::string_view name = field.getProto().getName().cStr();
    switch (type.which()) {
      case capnp::schema::Type::STRUCT:
        if (depth < 4) fill(builder.init(field).as<capnp::DynamicStruct>(), depth + 1);
        return;
      case capnp::schema::Type::LIST:
        return fill(builder.init(field, name == "members" && !one_of(4) ? 2 : length()).as<capnp::DynamicList>(),
                    depth);
      case capnp::schema::Type::DATA: {
        auto data = builder.init(field, length()).as<capnp::Data>();
        for (auto& byte : data) byte = static_cast<kj::byte>(below(256));
        return;
      }
      case capnp::schema::Type::TEXT: return builder.set(field, text(name).c_str());
      case capnp::schema::Type::ENUM: {
        const auto values = type.asEnum().getEnumerants();
        return builder.set(field, capnp::DynamicEnum(values[static_cast<unsigned>(below(values.size()))]));
      }
      case capnp::schema::Type::BOOL: return builder.set(field, one_of(2));
      case capnp::schema::Type::FLOAT32:
      case capnp::schema::Type::FLOAT64: return builder.set(field, real());
      case capnp::schema::Type::VOID: return builder.set(field, capnp::VOID);
      default: return set_number(builder, field, type.which(), number(name));
    }
  }

  /// Of the field's own width: the dynamic API refuses what does not fit.
  static void set_number(capnp::DynamicStruct::Builder builder, capnp::StructSchema::Field field,
                         capnp::schema::Type::Which which, std::int64_t n) {
    switch (which) {
      case capnp::schema::Type::UINT8: return builder.set(field, static_cast<std::uint8_t>(n));
      case capnp::schema::Type::UINT32: return builder.set(field, static_cast<std::uint32_t>(n));
      case capnp::schema::Type::UINT64: return builder.set(field, static_cast<std::uint64_t>(n));
      case capnp::schema::Type::INT32: return builder.set(field, static_cast<std::int32_t>(n));
      case capnp::schema::Type::INT64: return builder.set(field, n);
      default: throw std::logic_error("a type of field that this generator does not know");
    }
  }

  void fill(capnp::DynamicList::Builder list, int depth) {
    for (unsigned i = 0; i < list.size(); ++i) {
      switch (list.getSchema().whichElementType()) {
        case capnp::schema::Type::STRUCT: fill(list[i].as<capnp::DynamicStruct>(), depth + 1); break;
        case capnp::schema::Type::TEXT: list.set(i, word().c_str()); break;
        case capnp::schema::Type::DATA: {
          for (auto& byte : list.init(i, length()).as<capnp::Data>()) byte = static_cast<kj::byte>(below(256));
          break;
        }
        case capnp::schema::Type::UINT64: list.set(i, static_cast<std::uint64_t>(number())); break;
        default: list.set(i, static_cast<std::int32_t>(number()));
      }
    }
  }

  unsigned length() { return static_cast<unsigned>(one_of(20) ? below(200) : below(4)); }

  std::mt19937_64 random_;
};

}  // namespace paceline::wire
