// Names functions in one process and calls them in another one, which has its own addresses: run by function_ref_test,
// compiled once with -O0 and once with -O2. Exit status 0: all results were right.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "actors/function_ref.h"
#include "actors/invoke.h"

namespace {

int in_anonymous_namespace(int x) { return x + 1; }

template <class T>
T templated(T x) {
  return x * 3;
}

struct Shape {
  virtual ~Shape() = default;
  virtual int corners(int times) { return 0 * times; }
  int plain(int x) const { return x + 40; }
};
struct Padding {
  virtual ~Padding() = default;
  virtual int pad() { return 1; }
  int padding = 7;
};
struct Square : Padding, Shape {  // Shape is not at the beginning: methods of it need `this` adjusted.
  int corners(int times) override { return 4 * times; }
  virtual int area(int edge) { return edge * edge; }
  int edges(int x) noexcept { return x + padding; }
};

using paceline::Bytes;
using paceline::actors::Invocation;
using paceline::actors::Thunk;

struct Case {
  const char* name;
  paceline::actors::FunctionRef thunk;
  std::vector<Bytes> arguments;
  bool on_object;
  int expected;
};

template <class F>
Case function(const char* name, F f, int argument, int expected) {
  using Encoded = paceline::actors::encoded_t<F, int>;
  Bytes target;
  if constexpr (std::is_pointer_v<F>) target = paceline::actors::to_bytes(*paceline::actors::name_of(f));
  return {name,
          *paceline::actors::name_of(&paceline::actors::run_function<F, Encoded>),
          {target, paceline::actors::to_bytes(argument)},
          false,
          expected};
}

template <class M>
Case method(const char* name, M m, int argument, int expected) {
  using Encoded = paceline::actors::encoded_t<M, int>;
  return {name,
          *paceline::actors::name_of(&paceline::actors::run_method<Square, M, Encoded>),
          {paceline::actors::to_bytes(*paceline::actors::name_of(m)), paceline::actors::to_bytes(argument)},
          true,
          expected};
}

std::vector<Case> cases() {
  return {function("a function in an anonymous namespace", &in_anonymous_namespace, 1, 2),
          function("a template", &templated<int>, 5, 15),
          function(
              "a lambda", [](int x) { return x - 1; }, 10, 9),
          function(
              "another lambda", [](int x) { return x - 2; }, 10, 8),
          function("a function of another object", static_cast<int (*)(int)>(&std::abs), -3, 3),
          method("a method", &Square::edges, 1, 8),
          method("a const method of a base that is not at the beginning", &Square::plain, 2, 42),
          method("an overridden virtual method through the base", &Shape::corners, 2, 8),
          method("an overridden virtual method", &Square::corners, 3, 12),
          method("a virtual method of its own", &Square::area, 5, 25)};
}

std::string hex(const Bytes& bytes) {
  std::string text = "x";
  char digits[3];
  for (auto byte : bytes) {
    std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(byte));
    text += digits;
  }
  return text;
}

Bytes unhex(const std::string& text) {
  Bytes bytes;
  for (std::size_t i = 1; i + 1 < text.size(); i += 2)
    bytes.push_back(std::byte(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// Arguments: address of a function in the parent, then per case: thunk (hex), target (hex), argument (hex), on object,
/// expected.
int check(int argc, char** argv) {
  Square square;
  for (int i = 3; i + 4 < argc; i += 5) {
    const auto thunk = paceline::actors::from_bytes<paceline::actors::FunctionRef>(unhex(argv[i]), "thunk")
                           .and_then(paceline::actors::resolve);
    if (!thunk) return std::fprintf(stderr, "%s\n", thunk.error().text.c_str()), 1;
    const std::vector<Bytes> arguments{unhex(argv[i + 1]), unhex(argv[i + 2])};
    Invocation invocation{argv[i + 3][0] == '1' ? &square : nullptr, arguments, {}, {}, {}};
    if (const auto ran = reinterpret_cast<Thunk>(*thunk)(invocation); !ran)
      return std::fprintf(stderr, "%s\n", ran.error().text.c_str()), 1;
    const auto result = paceline::actors::from_bytes<int>(invocation.result, "result");
    if (!result || *result != std::atoi(argv[i + 4])) return std::fprintf(stderr, "case %d is wrong\n", (i - 3) / 5), 1;
  }
  char here[32];
  std::snprintf(here, sizeof here, "%p", reinterpret_cast<void*>(&in_anonymous_namespace));
  std::printf("%s\n", std::string(here) == argv[2] ? "same addresses" : "other addresses");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == "check") return check(argc, argv);
  char here[32];
  std::snprintf(here, sizeof here, "%p", reinterpret_cast<void*>(&in_anonymous_namespace));
  std::vector<std::string> words{argv[0], "check", here};
  for (const auto& one : cases()) {
    words.push_back(hex(paceline::actors::to_bytes(one.thunk)));
    words.push_back(hex(one.arguments[0]));
    words.push_back(hex(one.arguments[1]));
    words.push_back(one.on_object ? "1" : "0");
    words.push_back(std::to_string(one.expected));
  }
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());
  return 2;
}
