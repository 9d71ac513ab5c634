#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cache/kernels/aggregate.h"

namespace rhizome::testing {

/// Reference implementation of every layer as its paper defines it, with dense matrices in double
/// precision and libtorch's gradients.
class DenseConv {
 public:
  using Options = std::map<std::string, std::string>;

  /// `named`: the weights by their names in a layer.
  DenseConv(const std::map<std::string, torch::Tensor>& named, const torch::Tensor& x,
            const Csr& csr, const std::vector<std::uint32_t>& degrees,
            const std::vector<float>& weights, const std::vector<float>& weighted_degrees)
      : csr_(csr) {
    const auto copy = [&](const torch::Tensor& tensor) {
      return tensor.detach().to(torch::kDouble).clone().set_requires_grad(tensor.requires_grad());
    };
    x_ = copy(x);
    for (const auto& [name, tensor] : named) weights_[name] = copy(tensor);
    const auto targets = static_cast<std::int64_t>(csr.offsets.size()) - 1;
    edges_ = torch::zeros({targets, x.size(0)}, torch::kDouble);
    listed_ = torch::zeros({targets, 1}, torch::kDouble);
    for (std::int64_t t = 0; t < targets; ++t) {
      for (std::uint32_t e = csr.offsets[t]; e < csr.offsets[t + 1]; ++e)
        edges_[t][static_cast<std::int64_t>(csr.neighbors[e])] += weights.empty() ? 1 : weights[e];
      listed_[t] += static_cast<double>(csr.offsets[t + 1] - csr.offsets[t]);
    }
    weight_ = edges_.sum(1, true);
    const std::vector<double> values(degrees.begin(), degrees.end());
    degree_ = torch::tensor(values, torch::kDouble).unsqueeze(1);
    const std::vector<double> sums(weighted_degrees.begin(), weighted_degrees.end());
    weighted_degree_ = weights.empty() ? degree_ : torch::tensor(sums, torch::kDouble).unsqueeze(1);
    own_ = x_.narrow(0, 0, targets);
  }

  torch::Tensor Compute(const std::string& kind, const Options& options, const torch::Tensor& first,
                        bool training) const {
    if (kind == "sage") return Sage(options);
    if (kind == "gcn") return Gcn();
    if (kind == "gin") return Gin(options, training);
    if (kind.starts_with("gat")) return Gat(kind == "gatv2", options);
    return CommNet(options, first.to(torch::kDouble));
  }

  /// Returns the gradients of x and of the weights that have one. `order`: names of the weights, in
  /// the order in which Conv::VisitWeights first uses them.
  std::vector<torch::Tensor> Gradients(const torch::Tensor& loss,
                                       const std::vector<std::string>& order) const {
    std::vector<torch::Tensor> leaves = {x_};
    for (const std::string& name : order) leaves.push_back(weights_.at(name));
    return torch::autograd::grad({loss}, leaves);
  }

 private:
  torch::Tensor W(const std::string& name) const { return weights_.at(name); }
  torch::Tensor Times(const torch::Tensor& rows, const std::string& name) const {
    return torch::mm(rows, W(name).t());
  }
  torch::Tensor Mean(const torch::Tensor& rows) const {
    return torch::mm(edges_, rows) / torch::where(weight_ > 0, weight_, torch::ones_like(weight_));
  }

  /// Estimates the sum over all neighbours from the listed ones.
  torch::Tensor Sum(const torch::Tensor& rows) const {
    return torch::mm(edges_, rows) / listed_.clamp_min(1) * degree_.narrow(0, 0, own_.size(0));
  }

  /// Returns the maximum of each list in each column; zeros for empty lists.
  torch::Tensor Max(const torch::Tensor& rows) const {
    std::vector<torch::Tensor> all;
    for (std::size_t t = 0; t + 1 < csr_.offsets.size(); ++t) {
      std::vector<torch::Tensor> listed;
      for (std::uint32_t e = csr_.offsets[t]; e < csr_.offsets[t + 1]; ++e)
        listed.push_back(rows[static_cast<std::int64_t>(csr_.neighbors[e])]);
      all.push_back(listed.empty() ? torch::zeros({rows.size(1)}, torch::kDouble)
                                   : std::get<0>(torch::stack(listed).max(0)));
    }
    return torch::stack(all);
  }

  static std::string Of(const Options& options, const std::string& name,
                        const std::string& fallback) {
    const auto found = options.find(name);
    return found == options.end() ? fallback : found->second;
  }

  torch::Tensor Sage(const Options& options) const {
    const std::string aggregator = Of(options, "aggregator", "mean");
    torch::Tensor out;
    if (aggregator == "gcn") {
      const torch::Tensor mean = (torch::mm(edges_, x_) + own_) / (weight_ + 1);
      out = Times(mean, "neighbor.weight");
    } else {
      torch::Tensor reduced = aggregator == "mean" ? Mean(x_) : Max(x_);
      if (aggregator == "pool")
        reduced = Max(torch::relu(Times(x_, "pool.weight") + W("pool.bias")));
      out = Times(own_, "self.weight") + Times(reduced, "neighbor.weight");
    }
    out = out + W("bias");
    if (Of(options, "l2-normalize", "false") == "true")
      out = out / out.pow(2).sum(1, true).sqrt().clamp_min(1e-12);
    return out;
  }

  torch::Tensor Gcn() const {
    const torch::Tensor c = 1 / torch::sqrt(weighted_degree_ + 1);
    const torch::Tensor own = c.narrow(0, 0, own_.size(0));
    const torch::Tensor sum = Sum(x_ * c);
    return Times(own * sum + own * own * own_, "neighbor.weight") + W("bias");
  }

  torch::Tensor Gin(const Options& options, bool training) const {
    const double eps = std::stod(Of(options, "eps", "0"));
    const torch::Tensor sum = Sum(x_);
    const torch::Tensor hidden =
        Times(own_ * (1 + eps + W("eps")) + sum, "mlp.0.weight") + W("mlp.0.bias");
    torch::Tensor mean = W("mlp.norm.mean"), variance = W("mlp.norm.variance");
    if (training) {
      mean = hidden.mean(0);
      variance = (hidden - mean).pow(2).mean(0);
    }
    const torch::Tensor normed = (hidden - mean) / torch::sqrt(variance + 1e-5);
    const torch::Tensor scaled = normed * W("mlp.norm.weight") + W("mlp.norm.bias");
    return Times(torch::relu(scaled), "mlp.1.weight") + W("mlp.1.bias");
  }

  /// Computes attention edge by edge; the vertex itself comes first.
  torch::Tensor Gat(bool second, const Options& options) const {
    const std::int64_t heads = std::stoll(Of(options, "heads", "4"));
    const torch::Tensor z =
        Times(x_, "source.weight") + (second ? W("source.bias") : 0 * W("bias"));
    const torch::Tensor rows = z.view({z.size(0), heads, -1});
    const torch::Tensor asked =
        second ? (Times(own_, "target.weight") + W("target.bias")).view({own_.size(0), heads, -1})
               : rows.narrow(0, 0, own_.size(0));
    std::vector<torch::Tensor> all;
    for (std::int64_t t = 0; t < own_.size(0); ++t) {
      std::vector<torch::Tensor> listed;
      if (Of(options, "no-self-loops", "false") == "false") listed.push_back(rows[t]);
      for (std::uint32_t e = csr_.offsets[static_cast<std::size_t>(t)];
           e < csr_.offsets[static_cast<std::size_t>(t) + 1]; ++e)
        listed.push_back(rows[static_cast<std::int64_t>(csr_.neighbors[e])]);
      if (listed.empty()) {
        all.push_back(torch::zeros({z.size(1)}, torch::kDouble));
        continue;
      }
      const torch::Tensor from = torch::stack(listed);  // [edges, heads, columns]
      const torch::Tensor scores =
          second ? (torch::leaky_relu(from + asked[t], 0.2) * W("attention")).sum(2)
                 : torch::leaky_relu((from * W("attention.source")).sum(2) +
                                         (asked[t] * W("attention.target")).sum(1),
                                     0.2);
      all.push_back((torch::softmax(scores, 0).unsqueeze(2) * from).sum(0).flatten());
    }
    return torch::stack(all) + W("bias");
  }

  torch::Tensor CommNet(const Options& options, const torch::Tensor& first) const {
    torch::Tensor out = Times(own_, "hidden.weight") + Times(Mean(x_), "communication.weight");
    if (Of(options, "skip", "false") == "true") out = out + Times(first, "skip.weight");
    return out + W("bias");
  }

  const Csr& csr_;
  torch::Tensor x_, own_;
  torch::Tensor edges_;   // [targets, sources] sums of edge weights
  torch::Tensor listed_;  // [targets, 1]
  torch::Tensor weight_;  // [targets, 1]
  torch::Tensor degree_;  // [sources, 1]
  torch::Tensor weighted_degree_;
  std::map<std::string, torch::Tensor> weights_;
};

}  // namespace rhizome::testing
