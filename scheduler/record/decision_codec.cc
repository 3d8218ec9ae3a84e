#include "scheduler/record/decision_codec.h"

#include <limits>

namespace paceline::scheduler {
namespace {

constexpr std::int64_t kMembersMax = 1 << 20;

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

/// Differences wrap around instead of overflowing: any two instants have one.
std::int64_t minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// Numbers in groups of seven bits, the lowest first (LEB128).
class Out {
 public:
  explicit Out(std::string& bytes) : bytes_(bytes) {}
  bool number(std::int64_t& value) {
    std::uint64_t rest = zigzag(value);
    while (rest >= 0x80) {
      bytes_.push_back(static_cast<char>(rest | 0x80));
      rest >>= 7;
    }
    bytes_.push_back(static_cast<char>(rest));
    return true;
  }

 private:
  std::string& bytes_;
};

class In {
 public:
  explicit In(std::string_view bytes) : bytes_(bytes) {}
  std::string_view rest() const { return bytes_; }
  bool number(std::int64_t& value) {
    std::uint64_t result = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) return false;
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      result |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        value = unzigzag(result);
        return true;
      }
    }
    return false;
  }

 private:
  std::string_view bytes_;
};

template <class Coder>
bool code_small(Coder& coder, std::int32_t& value) {
  std::int64_t wide = value;
  if (!coder.number(wide) || wide < std::numeric_limits<std::int32_t>::min() ||
      wide > std::numeric_limits<std::int32_t>::max())
    return false;
  value = static_cast<std::int32_t>(wide);
  return true;
}

template <class Coder>
bool code_difference(Coder& coder, std::int64_t& value, std::int64_t from) {
  std::int64_t difference = minus(value, from);
  if (!coder.number(difference)) return false;
  value = plus(from, difference);
  return true;
}

template <class Coder>
bool code_time(Coder& coder, Decision& d, DecisionContext& context) {
  std::int64_t at = d.at.time_since_epoch().count();
  if (!code_difference(coder, at, context.at.time_since_epoch().count())) return false;
  d.at = context.at = Instant(Duration(at));
  return true;
}

template <class Coder>
bool code_version(Coder& coder, Decision& d, DecisionContext& context) {
  if (!code_difference(coder, d.version.value, context.version.value)) return false;
  context.version = d.version;
  return true;
}

template <class Coder>
bool code_took(Coder& coder, Decision& d) {
  std::int64_t took = d.took.count();
  if (!coder.number(took)) return false;
  d.took = Duration(took);
  return true;
}

template <class Coder>
bool code_contributions(Coder& coder, Decision& d) {
  auto members = static_cast<std::int64_t>(d.contributions.size());
  if (!coder.number(members) || members < 0 || members > kMembersMax) return false;
  std::int32_t rank = -1;
  for (std::int64_t i = 0; i < members; ++i) {
    if (i >= static_cast<std::int64_t>(d.contributions.size())) d.contributions.emplace_back();  // Decoding.
    auto& c = d.contributions[static_cast<std::size_t>(i)];
    std::int64_t at = c.rank.value;
    if (!code_difference(coder, at, std::int64_t{rank} + 1)) return false;
    if (at < 0 || at > kMembersMax) return false;
    c.rank.value = rank = static_cast<std::int32_t>(at);
    // 0: nothing, 1: of this version, 2: of another.
    std::int64_t late = c.iteration ? minus(d.version.value, c.iteration->value) : -1;
    std::int64_t state = !c.iteration ? 0 : late == 0 ? 1 : 2;
    if (!coder.number(state) || state < 0 || state > 2) return false;
    if (state == 2 && !coder.number(late)) return false;
    c.iteration.reset();
    if (state == 0) continue;
    c.iteration = Version{minus(d.version.value, state == 1 ? 0 : late)};
    if (!code_small(coder, c.bodies)) return false;
  }
  return true;
}

/// Both directions: which fields a decision of this kind has, in their order.
template <class Coder>
bool code(Coder& coder, Decision& d, DecisionContext& context) {
  using Kind = Decision::Kind;
  switch (d.kind) {
    case Kind::joined:
    case Kind::averaged:
    case Kind::stepped: return code_small(coder, d.rank.value);
    case Kind::exchanged:
      return code_small(coder, d.node.value) && code_small(coder, d.rank.value) && code_small(coder, d.group);
    case Kind::arrived:
      return code_small(coder, d.rank.value) && code_version(coder, d, context) && code_time(coder, d, context) &&
             code_took(coder, d);
    case Kind::activated:
      return code_small(coder, d.node.value) && code_version(coder, d, context) && code_time(coder, d, context);
    case Kind::counted: return code_version(coder, d, context) && code_time(coder, d, context);
    case Kind::partial:
      return code_small(coder, d.node.value) && code_version(coder, d, context) && code_small(coder, d.group) &&
             code_time(coder, d, context);
    case Kind::sealed:
      return code_version(coder, d, context) && code_small(coder, d.group) && code_time(coder, d, context) &&
             code_took(coder, d) && code_small(coder, d.stops) && code_contributions(coder, d);
    case Kind::executed:
      return code_version(coder, d, context) && code_small(coder, d.group) && code_time(coder, d, context);
    case Kind::merged:
    case Kind::alive:
    case Kind::gone_elsewhere:
    case Kind::returned:
    case Kind::back_elsewhere:
    case Kind::gone: return code_small(coder, d.rank.value) && code_time(coder, d, context);
    case Kind::node_gone: return code_small(coder, d.node.value) && code_time(coder, d, context);
    case Kind::looked: return code_time(coder, d, context);
    case Kind::batched:
      return code_small(coder, d.rank.value) && code_version(coder, d, context) && code_contributions(coder, d);
    case Kind::passed_over: return code_small(coder, d.rank.value) && code_version(coder, d, context);
    case Kind::frozen: return true;
    case Kind::ends: return code_version(coder, d, context);
    case Kind::remade:
    case Kind::ends_apart: return code_version(coder, d, context) && code_contributions(coder, d);
  }
  return false;
}

}  // namespace

void encode(const Decision& decision, DecisionContext& context, std::string& out) {
  out.push_back(static_cast<char>(decision.kind));
  Out coder(out);
  Decision copy = decision;
  code(coder, copy, context);
}

Result<void> decode(std::string_view bytes, DecisionContext& context, std::vector<Decision>& out) {
  while (!bytes.empty()) {
    Decision decision;
    decision.kind = static_cast<Decision::Kind>(bytes.front());
    In coder(bytes.substr(1));
    if (!code(coder, decision, context)) return fail(ErrorKind::invalid, "these bytes are no decisions");
    bytes = coder.rest();
    out.push_back(std::move(decision));
  }
  return {};
}

}  // namespace paceline::scheduler
