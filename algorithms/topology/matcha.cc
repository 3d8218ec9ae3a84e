#include "algorithms/topology/matcha.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "algorithms/topology/edge_colouring.h"

namespace paceline::algorithms {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Matching = std::vector<Edge>;

MatrixXd laplacian(const std::vector<Matching>& matchings, Index nodes, const VectorXd& weights) {
  MatrixXd sum = MatrixXd::Zero(nodes, nodes);
  for (std::size_t j = 0; j < matchings.size(); ++j)
    for (const Edge& edge : matchings[j]) {
      const double weight = weights[static_cast<Index>(j)];
      sum(edge.a, edge.a) += weight;
      sum(edge.b, edge.b) += weight;
      sum(edge.a, edge.b) -= weight;
      sum(edge.b, edge.a) -= weight;
    }
  return sum;
}

/// tr(A L_j): what a matching's Laplacian sees of a symmetric matrix.
double trace_with(const MatrixXd& a, const Matching& matching) {
  double sum = 0;
  for (const Edge& edge : matching) sum += a(edge.a, edge.a) + a(edge.b, edge.b) - 2 * a(edge.a, edge.b);
  return sum;
}

VectorXd eigenvalues(const MatrixXd& a) {
  return Eigen::SelfAdjointEigenSolver<MatrixXd>(a, Eigen::EigenvaluesOnly).eigenvalues();
}

/// Maximises lambda_2(L(p)), L(p) = sum_j p_j L_j, under sum_j p_j <= bound and 0 <= p_j <= 1, as the semidefinite
/// programme "t as large as possible with S = L(p) - t (I - J) + J positive definite": Newton's method on its barrier
///   -strength t - log det S - log(bound - sum p) - sum_j (log p_j + log(1 - p_j)),
/// whose minimum is within parameter() / strength of the optimum (Boyd and Vandenberghe, Convex Optimization, ch. 11).
class Probabilities {
 public:
  Probabilities(const std::vector<Matching>& matchings, Index nodes, double bound)
      : matchings_(matchings), nodes_(nodes), count_(static_cast<Index>(matchings.size())), bound_(bound) {}

  VectorXd maximised() {
    VectorXd x = VectorXd::Constant(count_ + 1, bound_ / (2 * static_cast<double>(count_)));  // p, then t.
    x[count_] = 0;
    const double gap = 1e-8 * bound_;
    for (double strength = parameter() / bound_;; strength *= 8) {
      centre(x, strength);
      if (parameter() / strength < gap) break;
    }
    return x.head(count_);
  }

 private:
  double parameter() const { return static_cast<double>(nodes_ + 2 * count_ + 1); }

  void centre(VectorXd& x, double strength) {
    for (int steps = 0; steps < 50; ++steps) {
      VectorXd gradient;
      MatrixXd hessian;
      differentiate(x, strength, gradient, hessian);
      const VectorXd direction = -hessian.ldlt().solve(gradient);
      const double slope = gradient.dot(direction);
      if (!(slope < -1e-10)) return;
      const double before = barrier(x, strength);
      double length = 1;
      while (!(barrier(x + length * direction, strength) <= before + 0.1 * length * slope)) {
        length /= 2;
        if (length < 1e-10) return;  // As near as rounding lets us.
      }
      x += length * direction;
    }
  }

  MatrixXd slack(const VectorXd& x) const {
    const double j = 1.0 / static_cast<double>(nodes_);
    MatrixXd s = laplacian(matchings_, nodes_, x.head(count_)).array() + (1 + x[count_]) * j;
    s.diagonal().array() -= x[count_];
    return s;
  }

  double barrier(const VectorXd& x, double strength) const {
    const auto p = x.head(count_);
    const double left = bound_ - p.sum();
    const Eigen::LLT<MatrixXd> factor(slack(x));
    if (p.minCoeff() <= 0 || p.maxCoeff() >= 1 || left <= 0 || factor.info() != Eigen::Success) return INFINITY;
    const MatrixXd& lower = factor.matrixLLT();
    return -strength * x[count_] - 2 * lower.diagonal().array().log().sum() - std::log(left) -
           (p.array().log() + (1 - p.array()).log()).sum();
  }

  void differentiate(const VectorXd& x, double strength, VectorXd& gradient, MatrixXd& hessian) const {
    const MatrixXd inverse = slack(x).llt().solve(MatrixXd::Identity(nodes_, nodes_));
    const MatrixXd square = inverse * inverse;
    const double left = bound_ - x.head(count_).sum();
    gradient.resize(count_ + 1);
    hessian.resize(count_ + 1, count_ + 1);
    for (Index j = 0; j < count_; ++j) {
      const auto& matching = matchings_[static_cast<std::size_t>(j)];
      MatrixXd columns(nodes_, static_cast<Index>(matching.size()));  // inverse * the edges of L_j
      for (Index e = 0; e < columns.cols(); ++e) {
        const Edge& edge = matching[static_cast<std::size_t>(e)];
        columns.col(e) = inverse.col(edge.a) - inverse.col(edge.b);
      }
      const MatrixXd product = columns * columns.transpose();  // inverse * L_j * inverse
      for (Index k = 0; k <= j; ++k)
        hessian(j, k) = hessian(k, j) =
            trace_with(product, matchings_[static_cast<std::size_t>(k)]) + 1 / (left * left);
      hessian(j, j) += 1 / (x[j] * x[j]) + 1 / ((1 - x[j]) * (1 - x[j]));
      hessian(j, count_) = hessian(count_, j) = -trace_with(square, matching);
      gradient[j] = -trace_with(inverse, matching) + 1 / left - 1 / x[j] + 1 / (1 - x[j]);
    }
    gradient[count_] = -strength + inverse.trace() - 1;  // The 1 is J's: S leaves it as it is.
    hessian(count_, count_) = square.trace() - 1;
  }

  const std::vector<Matching>& matchings_;
  Index nodes_, count_;
  double bound_;
};

/// Minimises the convex rho(alpha) = || I - 2 alpha Lb + alpha^2 (Lb^2 + 2 Lt) - J ||, Lb = sum p_j L_j and
/// Lt = sum p_j (1 - p_j) L_j, by golden section. It is 1 at 0 and at least 1 from 2 / lambda_max(Lb) on.
void choose_alpha(Matcha& matcha) {
  const Index nodes = matcha.nodes;
  const VectorXd p = VectorXd::Map(matcha.probabilities.data(), static_cast<Index>(matcha.probabilities.size()));
  const MatrixXd mean = laplacian(matcha.matchings, nodes, p);
  const MatrixXd second = mean * mean + 2 * laplacian(matcha.matchings, nodes, p.array() * (1 - p.array()));
  MatrixXd base = MatrixXd::Identity(nodes, nodes);
  base.array() -= 1.0 / static_cast<double>(nodes);
  const auto rho = [&](double alpha) {
    return eigenvalues(base - 2 * alpha * mean + alpha * alpha * second)[nodes - 1];
  };
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double low = 0, high = 2 / eigenvalues(mean)[nodes - 1];
  double left = high - golden * (high - low), right = low + golden * (high - low);
  double at_left = rho(left), at_right = rho(right);
  while (high - low > 1e-9 * high) {
    if (at_left < at_right) {
      high = std::exchange(right, left);
      at_right = at_left;
      left = high - golden * (high - low);
      at_left = rho(left);
    } else {
      low = std::exchange(left, right);
      at_left = at_right;
      right = low + golden * (high - low);
      at_right = rho(right);
    }
  }
  matcha.alpha = (low + high) / 2;
  matcha.rho = rho(matcha.alpha);
}

Result<void> check_matchings(const std::vector<Matching>& matchings, std::int32_t nodes) {
  std::set<std::pair<std::int32_t, std::int32_t>> edges;
  for (std::size_t j = 0; j < matchings.size(); ++j) {
    std::set<std::int32_t> seen;
    for (const Edge& edge : matchings[j]) {
      const auto bad = [&](const char* what) {
        return fail(ErrorKind::invalid, "matching " + std::to_string(j) + ", edge " + std::to_string(edge.a) + " " +
                                            std::to_string(edge.b) + ": " + what);
      };
      const auto [low, high] = std::minmax(edge.a, edge.b);
      if (low < 0 || high >= nodes) return bad("a rank is out of range: ranks are 0 to the number of workers - 1");
      if (!seen.insert(low).second || !seen.insert(high).second)
        return bad("a rank is twice in this matching: put the edge into another one");
      if (!edges.emplace(low, high).second) return bad("is given twice: remove one");
    }
    if (seen.empty()) return fail(ErrorKind::invalid, "matching " + std::to_string(j) + " is empty: leave it out");
  }
  return {};
}

Result<void> check_nodes(std::int32_t nodes) {
  if (nodes >= 1 && nodes <= kMatchaNodesMax) return {};
  return fail(ErrorKind::invalid, "matcha takes 1 to " + std::to_string(kMatchaNodesMax) + " workers, not " +
                                      std::to_string(nodes) + ": use fewer workers, or a mixing with fixed weights");
}

}  // namespace

Result<Matcha> make_matcha(const Graph& graph, double budget) {
  PACELINE_TRY(check_nodes(graph.nodes));
  return make_matcha(matchings_of(graph), graph.nodes, budget);
}

Result<Matcha> make_matcha(std::vector<Matching> matchings, std::int32_t nodes, double budget) {
  PACELINE_TRY(check_nodes(nodes));
  if (!(budget > 0 && budget <= 1))
    return fail(ErrorKind::invalid, "matcha's budget is the share of the matchings that is active on average, not " +
                                        std::to_string(budget) + ": give one above 0 and up to 1");
  PACELINE_TRY(check_matchings(matchings, nodes));
  Graph graph{.nodes = nodes, .edges = {}};
  for (const auto& matching : matchings) graph.edges.insert(graph.edges.end(), matching.begin(), matching.end());
  const auto reached = reached_from_0(neighbours_of(graph));
  if (const auto lost = std::find(reached.begin(), reached.end(), false); lost != reached.end())
    return fail(ErrorKind::invalid, "matcha needs a connected graph, and from 0 no path leads to " +
                                        std::to_string(lost - reached.begin()) + ": add an edge between the parts");

  Matcha matcha{.nodes = nodes, .matchings = std::move(matchings), .probabilities = {}};
  const std::size_t count = matcha.matchings.size();
  matcha.probabilities.assign(count, 1.0);
  if (nodes == 1) return matcha;
  if (budget == 1) {
    const auto values = eigenvalues(laplacian(matcha.matchings, nodes, VectorXd::Ones(static_cast<Index>(count))));
    const double lowest = values[1], highest = values[nodes - 1];
    matcha.alpha = 2 / (lowest + highest);
    matcha.rho = std::pow((highest - lowest) / (highest + lowest), 2);
    return matcha;
  }
  const VectorXd p = Probabilities(matcha.matchings, nodes, budget * static_cast<double>(count)).maximised();
  for (std::size_t j = 0; j < count; ++j) {
    const double found = p[static_cast<Index>(j)];
    matcha.probabilities[j] = found < 1e-6 ? 0 : found > 1 - 1e-6 ? 1 : found;
  }
  choose_alpha(matcha);
  return matcha;
}

}  // namespace paceline::algorithms
