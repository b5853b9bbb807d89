"""Where a graph can be cut: places at which one value alone goes on. For strategies that deal out a model in blocks."""


def segments(graph):
    """The layers' names, in the graph's order, cut wherever everything that follows reads one single value.

    A residual block is one segment, and so is a layer that stands alone. The input belongs to the first one.
    """
    last_reader = {}
    for place, layer in enumerate(graph["layers"]):
        for source in layer["inputs"]:
            last_reader[source] = place
    for loss in graph["losses"]:
        last_reader[loss["logits"]] = len(graph["layers"])
    cut, current, alive = [], [], set()
    for place, layer in enumerate(graph["layers"]):
        current.append(layer["name"])
        alive.add(layer["name"])
        alive = {name for name in alive if last_reader.get(name, -1) > place}
        if alive == {layer["name"]} and layer["kind"] != "input":
            cut.append(current)
            current = []
    if current:
        cut.append(current)
    return cut


def blocks(graph, least=0):
    """Segments joined to what one deals out as a whole.

    In a transformer the first block is what comes before attention, and each later one begins where it can and holds
    one attention layer; the head belongs to the last. In other graphs a segment with fewer than `least` parameters (a
    norm, a ReLU) belongs to the one before it.
    """
    layers = {layer["name"]: layer for layer in graph["layers"]}
    attends = any(layer["kind"] == "attention" for layer in graph["layers"])
    joined = []
    for segment in segments(graph):
        if attends:
            begins = any(layers[name]["kind"] == "attention" for name in segment)
        else:
            begins = sum(_size(layers[name]) for name in segment) > least
        if begins or not joined:
            joined.append(list(segment))
        else:
            joined[-1].extend(segment)
    return joined


def stage_graph(graph, stage, stages):
    """The part of a transformer's graph that stage `stage` of `stages` computes, as a graph of its own.

    What the stage before hands over is this one's input, under its own name, and what it hands on takes the place of
    the logits.

    Raises:
        ValueError: there are fewer blocks than stages.
    """
    prologue, whole = blocks(graph)[0], blocks(graph)[1:]
    if len(whole) < stages:
        raise ValueError("{} blocks cannot fill {} stages".format(len(whole), stages))
    first, last = (len(whole) * at // stages for at in (stage, stage + 1))
    names = [name for block in whole[first:last] for name in block]
    layers = {layer["name"]: layer for layer in graph["layers"]}
    if stage == 0:
        kept = [layers[name] for name in prologue + names]
    else:
        before = layers[(prologue if first == 0 else whole[first - 1])[-1]]
        kept = [dict(before, kind="input", inputs=[], parameters=[], buffers=[])] + [layers[name] for name in names]
    losses = graph["losses"] if stage == stages - 1 else [{"logits": names[-1], "weight": 1.0}]
    return dict(graph, layers=kept, losses=losses)


def _size(layer):
    total = 0
    for tensor in layer["parameters"]:
        count = 1
        for extent in tensor["shape"]:
            count *= extent
        total += count
    return total
