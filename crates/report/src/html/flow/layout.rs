//! Where the nodes and edges of a graph are drawn: layers from left to right, few crossings, long edges
//! around what is between.
//!
//! The method of Sugiyama, Tagawa and Toda (1981). Crates that have it give no routes of edges, and choose
//! themselves which edges go back; here it must be those that a walk from the sources finds to lead back.
//! Always the same result for the same graph.

/// Space between neighbours of a layer, and between layers.
const GAP: f64 = 16.0;
const LAYER_GAP: f64 = 48.0;
/// How high what is no node is: an edge on its way past a layer.
const PASSING: f64 = 10.0;
/// Sweeps over the layers; crossings hardly become fewer after some.
const SWEEPS: usize = 16;
/// Space for each edge that leads back, below everything else.
const LANE: f64 = 18.0;

/// Width and height.
pub(super) type Size = (f64, f64);
/// Across and down.
pub(super) type Point = (f64, f64);

/// A drawing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Layout {
    /// Centres of nodes.
    pub(super) nodes: Vec<Point>,
    /// In the order of the edges given.
    pub(super) edges: Vec<Route>,
    pub(super) size: Size,
}

/// The way of an edge.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Route {
    /// Against the direction of the drawing, below all nodes.
    pub(super) is_back: bool,
    /// Pairs of points: straight between those of a pair, curved from one pair to the next.
    pub(super) stretches: Vec<(Point, Point)>,
}

/// Something in a layer: a node, or an edge on its way past it.
#[derive(Clone, Debug, Default)]
struct Item {
    layer: usize,
    height: f64,
    before: Vec<usize>,
    after: Vec<usize>,
    y: f64,
}

/// Lays out nodes of these sizes with these edges between them.
pub(super) fn layout(sizes: &[Size], edges: &[(usize, usize)]) -> Layout {
    let (order, is_back) = walk(sizes.len(), edges);
    let layers = layers(&order, edges, &is_back);
    let mut items: Vec<Item> = sizes
        .iter()
        .zip(&layers)
        .map(|(size, layer)| Item { layer: *layer, height: size.1, ..Item::default() })
        .collect();
    let passed: Vec<Vec<usize>> =
        edges.iter().zip(&is_back).map(|(edge, back)| pass(&mut items, *edge, *back)).collect();

    let columns = items.iter().map(|item| item.layer + 1).max().unwrap_or(0);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); columns];
    // In the order of the walk, so that what belongs together is together from the beginning.
    for &node in order.iter().chain(&(sizes.len()..items.len()).collect::<Vec<_>>()) {
        rows[items[node].layer].push(node);
    }
    uncross(&mut rows, &items);
    place(&rows, &mut items);

    let widths: Vec<f64> = rows
        .iter()
        .map(|row| row.iter().filter_map(|item| sizes.get(*item)).fold(0.0, |most, size| size.0.max(most)))
        .collect();
    let centre = |layer: usize| {
        widths[..layer].iter().map(|width| width + LAYER_GAP).sum::<f64>() + widths[layer] / 2.0 + GAP
    };
    let nodes: Vec<Point> = items[..sizes.len()].iter().map(|item| (centre(item.layer), item.y)).collect();
    let bottom = items.iter().fold(0.0_f64, |most, item| most.max(item.y + item.height / 2.0));
    let mut lanes = 0;
    let routes = edges.iter().zip(&is_back).zip(&passed).map(|((&(from, to), &is_back), passed)| {
        let begin = (nodes[from].0 + sizes[from].0 / 2.0, nodes[from].1);
        let end = (nodes[to].0 - sizes[to].0 / 2.0, nodes[to].1);
        let mut stretches = vec![(begin, begin)];
        if is_back {
            lanes += 1;
            let y = bottom + GAP + f64::from(lanes) * LANE;
            // Into the spaces between layers, which nodes leave free.
            let (right, left) = (
                centre(layers[from]) + widths[layers[from]] / 2.0,
                centre(layers[to]) - widths[layers[to]] / 2.0,
            );
            stretches.push(((right, y), (left, y)));
        }
        stretches.extend(passed.iter().map(|&item| {
            let (x, half, y) = (centre(items[item].layer), widths[items[item].layer] / 2.0, items[item].y);
            ((x - half, y), (x + half, y))
        }));
        stretches.push((end, end));
        Route { is_back, stretches }
    });
    let edges = routes.collect();
    let width = widths.iter().map(|width| width + LAYER_GAP).sum::<f64>() - LAYER_GAP + 2.0 * GAP;
    let height = bottom + GAP + if lanes > 0 { GAP + f64::from(lanes) * LANE } else { 0.0 };
    Layout { nodes, edges, size: (width.max(0.0), height) }
}

/// Nodes so that every edge that does not lead back goes from an earlier to a later one; and which edges do.
/// A walk in depth from the sources, then from what is not reached from any.
fn walk(nodes: usize, edges: &[(usize, usize)]) -> (Vec<usize>, Vec<bool>) {
    let mut out: Vec<Vec<(usize, usize)>> = vec![Vec::new(); nodes];
    let mut is_source = vec![true; nodes];
    for (index, &(from, to)) in edges.iter().enumerate() {
        out[from].push((index, to));
        is_source[to] = is_source[to] && from == to;
    }
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut state = vec![State::New; nodes];
    let mut is_back = vec![false; edges.len()];
    let mut done = Vec::with_capacity(nodes);
    let roots = (0..nodes).filter(|node| is_source[*node]).chain(0..nodes);
    for root in roots {
        if state[root] != State::New {
            continue;
        }
        state[root] = State::Open;
        let mut open = vec![(root, 0)];
        while let Some((node, next)) = open.last_mut() {
            match out[*node].get(*next) {
                Some(&(edge, to)) => {
                    *next += 1;
                    match state[to] {
                        State::New => {
                            state[to] = State::Open;
                            open.push((to, 0));
                        }
                        State::Open => is_back[edge] = true,
                        State::Done => {}
                    }
                }
                None => {
                    state[*node] = State::Done;
                    done.push(*node);
                    open.pop();
                }
            }
        }
    }
    done.reverse();
    (done, is_back)
}

/// As far to the left as what leads to a node allows; but sources directly before the first that they lead
/// to.
fn layers(order: &[usize], edges: &[(usize, usize)], is_back: &[bool]) -> Vec<usize> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
    let mut after = before.clone();
    for (&(from, to), _) in edges.iter().zip(is_back).filter(|(_, back)| !**back) {
        before[to].push(from);
        after[from].push(to);
    }
    let mut layers = vec![0; order.len()];
    for &node in order {
        layers[node] = before[node].iter().map(|from| layers[*from] + 1).max().unwrap_or(0);
    }
    for &node in order {
        if before[node].is_empty() {
            layers[node] = after[node].iter().map(|to| layers[*to] - 1).min().unwrap_or(0);
        }
    }
    layers
}

/// Items for an edge in the layers between its ends, joined to them and to each other.
fn pass(items: &mut Vec<Item>, (from, to): (usize, usize), is_back: bool) -> Vec<usize> {
    if is_back {
        return Vec::new();
    }
    let (mut last, mut passed) = (from, Vec::new());
    for layer in items[from].layer + 1..items[to].layer {
        items.push(Item { layer, height: PASSING, ..Item::default() });
        let item = items.len() - 1;
        items[last].after.push(item);
        items[item].before.push(last);
        passed.push(item);
        last = item;
    }
    items[last].after.push(to);
    items[to].before.push(last);
    passed
}

/// Orders each layer by the mean place of what its items are joined to, there and back, and keeps the order
/// with the fewest crossings.
fn uncross(rows: &mut Vec<Vec<usize>>, items: &[Item]) {
    let mut best = (crossings(rows, items), rows.clone());
    for sweep in 0..SWEEPS {
        if best.0 == 0 {
            break;
        }
        let forward = sweep % 2 == 0;
        let columns: Vec<usize> = if forward {
            (1..rows.len()).collect()
        } else {
            (0..rows.len().saturating_sub(1)).rev().collect()
        };
        for column in columns {
            let places = places(rows, items.len());
            let mean = |item: usize| {
                let joined = if forward { &items[item].before } else { &items[item].after };
                match joined.len() {
                    0 => places[item] as f64,
                    number => joined.iter().map(|other| places[*other] as f64).sum::<f64>() / number as f64,
                }
            };
            // Stable: what has the same mean stays in its order.
            rows[column].sort_by(|one, other| mean(*one).total_cmp(&mean(*other)));
        }
        let found = crossings(rows, items);
        if found < best.0 {
            best = (found, rows.clone());
        }
    }
    *rows = best.1;
}

/// Where each item is in its layer.
fn places(rows: &[Vec<usize>], items: usize) -> Vec<usize> {
    let mut places = vec![0; items];
    for row in rows {
        for (place, &item) in row.iter().enumerate() {
            places[item] = place;
        }
    }
    places
}

fn crossings(rows: &[Vec<usize>], items: &[Item]) -> usize {
    let places = places(rows, items.len());
    let crossed = |row: &Vec<usize>| {
        let edges: Vec<(usize, usize)> = row
            .iter()
            .flat_map(|&item| {
                items[item].after.iter().map(|to| (places[item], places[*to])).collect::<Vec<_>>()
            })
            .collect();
        let crosses = |one: &(usize, usize), other: &(usize, usize)| one.0 < other.0 && one.1 > other.1;
        edges.iter().map(|one| edges.iter().filter(|other| crosses(one, other)).count()).sum::<usize>()
    };
    rows.iter().map(crossed).sum()
}

/// How far down each item is: near the mean of what it is joined to, and never into its neighbours.
fn place(rows: &[Vec<usize>], items: &mut [Item]) {
    for row in rows {
        let mut y = 0.0;
        for &item in row {
            items[item].y = y + items[item].height / 2.0;
            y += items[item].height + GAP;
        }
    }
    for sweep in 0..SWEEPS {
        let columns: Vec<usize> =
            if sweep % 2 == 0 { (0..rows.len()).collect() } else { (0..rows.len()).rev().collect() };
        for column in columns {
            let wanted = |item: &Item| {
                let joined = item.before.iter().chain(&item.after);
                let (sum, number) =
                    joined.fold((0.0, 0), |(sum, number), other| (sum + items[*other].y, number + 1));
                if number == 0 { item.y } else { sum / f64::from(number) }
            };
            let row = &rows[column];
            let wanted: Vec<f64> = row.iter().map(|item| wanted(&items[*item])).collect();
            let heights: Vec<f64> = row.iter().map(|item| items[*item].height).collect();
            for (item, y) in row.iter().zip(apart(&wanted, &heights)) {
                items[*item].y = y;
            }
        }
    }
    let top = items.iter().fold(f64::INFINITY, |least, item| least.min(item.y - item.height / 2.0));
    for item in items {
        item.y += GAP - top;
    }
}

/// Places in this order, as near as may be to those that are wanted, without overlap: the least squares
/// solution, by pooling neighbours that want each other's place.
fn apart(wanted: &[f64], heights: &[f64]) -> Vec<f64> {
    let mut offsets = vec![0.0; wanted.len()];
    for index in 1..wanted.len() {
        offsets[index] = offsets[index - 1] + (heights[index - 1] + heights[index]) / 2.0 + GAP;
    }
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (want, offset) in wanted.iter().zip(&offsets) {
        let mut pool = (want - offset, 1);
        while let Some(&(sum, number)) = pools.last() {
            if sum / number as f64 <= pool.0 / pool.1 as f64 {
                break;
            }
            pool = (pool.0 + sum, pool.1 + number);
            pools.pop();
        }
        pools.push(pool);
    }
    let means = pools.iter().flat_map(|(sum, number)| std::iter::repeat_n(sum / *number as f64, *number));
    means.zip(&offsets).map(|(mean, offset)| mean + offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_chain_goes_from_left_to_right_and_its_feedback_back() {
        let layout = layout(&[(50.0, 20.0); 3], &[(0, 1), (1, 2), (2, 1), (0, 2)]);
        let xs: Vec<f64> = layout.nodes.iter().map(|node| node.0).collect();
        assert!(xs[0] < xs[1] && xs[1] < xs[2], "{xs:?}");
        let is_back: Vec<bool> = layout.edges.iter().map(|edge| edge.is_back).collect();
        assert_eq!(is_back, [false, false, true, false]);
        // That over two layers goes around the node between.
        let (past, node) = (layout.edges[3].stretches[1].0.1, layout.nodes[1].1);
        assert!((past - node).abs() >= 10.0, "{past} {node}");
    }

    #[test]
    fn avoidable_crossings_are_avoided() {
        let layout = layout(&[(10.0, 10.0); 6], &[(0, 4), (1, 3), (2, 5), (0, 3)]);
        let y = |node: usize| layout.nodes[node].1;
        let crosses = |(a, b): (usize, usize), (c, d): (usize, usize)| (y(a) - y(c)) * (y(b) - y(d)) < 0.0;
        assert!(
            !crosses((0, 4), (1, 3)) && !crosses((0, 4), (2, 5)) && !crosses((1, 3), (2, 5)),
            "{:?}",
            layout.nodes
        );
    }

    proptest! {
        #[test]
        fn graphs_are_drawn_without_overlap_and_only_feedback_goes_left(
            nodes in 1..24_usize,
            edges in prop::collection::vec((0..24_usize, 0..24_usize), 0..60),
        ) {
            let edges: Vec<(usize, usize)> = edges.into_iter().map(|(from, to)| (from % nodes, to % nodes))
                .collect();
            let sizes: Vec<Size> = (0..nodes).map(|node| (30.0 + node as f64, 20.0 + (node % 5) as f64 * 7.0))
                .collect();
            let found = layout(&sizes, &edges);
            prop_assert_eq!(&found, &layout(&sizes, &edges), "the same graph is drawn in two ways");
            for (edge, route) in edges.iter().zip(&found.edges) {
                let (from, to) = (found.nodes[edge.0], found.nodes[edge.1]);
                prop_assert_eq!(route.is_back, from.0 >= to.0, "{:?}", edge);
            }
            for one in 0..nodes {
                let (x, y) = found.nodes[one];
                prop_assert!(x - sizes[one].0 / 2.0 >= 0.0 && y - sizes[one].1 / 2.0 >= 0.0);
                prop_assert!(x + sizes[one].0 / 2.0 <= found.size.0
                    && y + sizes[one].1 / 2.0 <= found.size.1);
                for other in 0..one {
                    let (u, v) = found.nodes[other];
                    let across = (sizes[one].0 + sizes[other].0) / 2.0 <= (x - u).abs() + 1e-6;
                    let down = (sizes[one].1 + sizes[other].1) / 2.0 <= (y - v).abs() + 1e-6;
                    prop_assert!(across || down, "{} and {} overlap: {:?}", one, other, found.nodes);
                }
            }
        }
    }
}
