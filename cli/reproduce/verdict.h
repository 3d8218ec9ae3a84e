#pragma once

#include <limits>
#include <string>
#include <vector>

namespace paceline::cli::reproduce {

/// A figure under several seeds; one value where no chance is in it.
struct Spread {
  std::vector<double> values;

  double mean() const;
  double least() const;
  double most() const;
  /// "1.35 (1.34 to 1.36)"; of one value "1.35".
  std::string text(int digits = 2) const;
};
/// Seed by seed.
Spread operator/(const Spread& a, const Spread& b);

/// What a figure must keep for its claim to hold: limits of its mean, and of its value under every seed.
class Bound {
 public:
  static Bound at_least(double mean);
  static Bound at_most(double mean);
  static Bound within(double mean, double tolerance);
  /// An order: it is one only if every seed shows it.
  static Bound above(double each);
  static Bound below(double each);
  /// For "`paper` times as fast": four fifths of that gain in the mean, and faster under every seed.
  static Bound speedup(double paper);

  bool keeps(const Spread& figure) const;
  /// The order is the other way round under every seed.
  bool reversed(const Spread& figure) const;
  /// "≥ 1.21, each > 1"; limits of one value are its own.
  std::string text(bool of_one = false) const;

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  double mean_least_ = -kNone, mean_most_ = kNone, above_ = -kNone, below_ = kNone;
};

/// A figure that is held to a bound.
struct Check {
  std::string name;  ///< Of what; may be empty.
  Spread figure;
  Bound bound;
  int digits = 2;

  bool keeps() const { return bound.keeps(figure); }
  std::string bound_text() const { return bound.text(figure.values.size() == 1); }
};

enum class Verdict { holds, by_construction, fitted, does_not_hold, not_tried };
inline constexpr Verdict kVerdicts[] = {Verdict::holds, Verdict::by_construction, Verdict::fitted,
                                        Verdict::does_not_hold, Verdict::not_tried};
const char* in_words(Verdict verdict);

/// What figures that keep their bounds show.
enum class Evidence {
  measured,
  by_construction,  ///< Nothing: a formula is compared with itself, or the figure follows from what was put in.
  fitted            ///< Little: a constant was chosen so that the paper's own number comes out.
};

/// The only way to a verdict: without a check nothing was tried.
Verdict verdict_of(const std::vector<Check>& checks, Evidence evidence);

}  // namespace paceline::cli::reproduce
