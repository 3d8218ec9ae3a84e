// What refused_calls_test.py compiles, once a case: CASE 0 is right, the text after each other one is what the compiler
// has to say, and the only thing.
#include <paceline.h>

#include <functional>
#include <string>
#include <vector>

namespace {

class Adder {
 public:
  explicit Adder(long start = 0) : n_(start) {}
  long add(long k) { return n_ += k; }
  void into(long& k) { k = n_; }
  void keep(const std::string& name) { name_ = name; }
  long* where() { return &n_; }

 private:
  long n_;
  std::string name_;
};

[[maybe_unused]] long twice(long k) { return 2 * k; }

}  // namespace

int main() {
  paceline::Handle<Adder> adder;
  std::string text;
  [[maybe_unused]] long number = 1;
#if CASE == 0
  adder = paceline::create<Adder>({.name = "adder"}, 1);
  adder.call(&Adder::add, 2);
  adder.call(&Adder::add, adder.call(&Adder::add, number));
  adder.call(&Adder::keep, "a name");
  paceline::async(twice, 1.5F).then([&number](long k) { number = k; });
  number = paceline::map(twice, std::vector<int>{1}).at(0);
  paceline::map([](long k) { (void)k; }, std::vector<paceline::Future<long>>{});
  paceline::parallel_for(0L, 10, [number](long k) { return k + number; });
  paceline::durable<std::string> kept("a text");
  paceline::durable_array<double> many(3);
#elif CASE == 1   // an argument cannot be converted to the method's parameter
  adder.call(&Adder::add, "hello");
#elif CASE == 2   // an argument cannot be converted to the method's parameter
  adder.call(&Adder::add, text);
#elif CASE == 3   // an argument cannot be converted to the method's parameter
  adder.call(&Adder::keep, 7);
#elif CASE == 4   // an argument cannot be converted to the method's parameter
  adder.call(&Adder::add, &number);
#elif CASE == 5   // the arguments of call() do not fit the method's parameters, or it is no method of the actor
  adder.call(&Adder::add, 1, 2);
#elif CASE == 6   // the arguments of call() do not fit the method's parameters, or it is no method of the actor
  adder.call(&std::string::size);
#elif CASE == 7   // the result cannot travel: see paceline::Serialisable
  adder.call(&Adder::where);
#elif CASE == 8   // the actor's class has no constructor for these arguments
  adder = paceline::create<Adder>("hello");
#elif CASE == 9   // an argument cannot travel: see paceline::Serialisable
  adder = paceline::create<Adder>(&number);
#elif CASE == 10  // an argument cannot be converted to the function's parameter
  paceline::async(twice, "hello");
#elif CASE == 11  // the arguments of call() do not fit the method's parameters, or it is no method of the actor
  adder.call(&Adder::add, paceline::Future<std::string>());
#elif CASE == 12  // a parameter is a non-const reference: nothing comes back through it
  adder.call(&Adder::into, number);
#elif CASE == 13  // a constructor takes values: pass future.get()
  adder = paceline::create<Adder>(paceline::Future<long>());
#elif CASE == 14  // the result cannot travel: see paceline::Serialisable
  paceline::async([](long k) { return new long(k); }, 1);
#elif CASE == 15  // an argument cannot be converted to the function's parameter
  paceline::map(twice, std::vector<std::string>{"a"});
#elif CASE == 16  // paceline::map takes a function and a range of its arguments
  paceline::map(twice, 7);
#elif CASE == 17  // the arguments of paceline::async do not fit the function's parameters
  paceline::map([](long, long) { return 1; }, std::vector<long>{1});
#elif CASE == 18  // the function of paceline::parallel_for takes an index
  paceline::parallel_for(0, 10, [](const std::string&) {});
#elif CASE == 19  // paceline::parallel_for takes a function, or a lambda that captures plain values by copy
  paceline::parallel_for(0, 10, [text](int) {});
#elif CASE == 20  // paceline::parallel_for counts from one integer to another
  paceline::parallel_for(0.5, 10, [](double) {});
#elif CASE == 21  // then() takes a function of what the future gives
  paceline::async(twice, 1).then([](const std::string&) {});
#elif CASE == 22  // what the function of then() gives cannot travel: see paceline::Serialisable
  paceline::async(twice, 1).then([](long k) { return new long(k); });
#elif CASE == 23  // durable state cannot be a pointer or a reference
  paceline::durable<long*> where;
#elif CASE == 24  // durable<T>: T is neither trivially copyable nor serialisable
  paceline::durable<std::function<void()>> what;
#elif CASE == 25  // durable_array<T>: T is not trivially copyable
  paceline::durable_array<std::string> texts(3);
#endif
}
