#pragma once

#include <array>

namespace paceline::sim {

/// One of each kind, for four workers: every strategy, late workers in every way, and compositions.
inline constexpr std::array kStrategies{
    "allreduce",
    "local-sgd(period=4)",
    "k-avg(period=3)",
    "one-shot",
    "post-local(warmup=3,period=3)",
    "wagma(group=2,sync=4)",
    "wagma(group=2,sync=4,late=skip)",
    "wagma(group=2,sync=4,grouping=strided,late_merge=version)",
    "adacomm(period=4,interval=0.02s)",
    "qsr(base=2,alpha=0.01)",
    "hier-avg(k1=2,k2=4,group=2)",
    "tiers(wagma(group=2,sync=6,late=skip),local-sgd(period=6))",
    "nonblocking(batches=4)",
    "nonblocking(batches=3,inflight=wait)",
    "nonblocking(d-psgd(ring),batches=3)",
    "nonblocking(server(sync),batches=3)",
    "eager-sgd(solo,sync=4)",
    "eager-sgd(majority,late=drop,sync=4)",
    "d-psgd(ring)",
    "matcha(ring,budget=0.5)",
    "sgp",
    "osgp(bound=2)",
    "ad-psgd(bipartite)",
    "server(sync)",
    "server(async)",
    "server(bounded=2,scale=staleness)",
    "bmuf(period=3)",
    "slowmo(period=3)",
    "diloco(period=3)",
    "decoupled-diloco(period=3)",
    "streaming-diloco(period=4,fragments=2)",
    "noloco(period=3)",
};

}  // namespace paceline::sim
