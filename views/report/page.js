"use strict";
(async () => {
  const byId = (name) => document.getElementById(name);
  const data = JSON.parse(byId("mtpp-data").textContent);
  const roots = new Map();

  // --- colours that follow the reader's scheme ---------------------------------------------------------------------
  const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  function paint(root) {
    for (const model of root.references()) {
      for (const tag of model.tags ?? []) {
        const [property, name] = String(tag).split("=");
        const now = model[property];
        model[property] = now !== null && typeof now === "object" ? { value: colourOf(name) } : colourOf(name);
      }
    }
  }
  const repaint = () => { for (const root of roots.values()) paint(root); };
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  // Paper is white: charts are drawn anew before the page is printed, at once and not in the next frame. It is narrow as well:
  // charts keep their size on the screen, and are shrunk to that of the paper.
  const paperWidth = 700;
  const forPaper = (printing) => {
    document.documentElement.classList.toggle("paper", printing);
    for (const plot of document.querySelectorAll(".plot:not([hidden])")) {
      plot.style.setProperty("--shrunk", Math.min(1, paperWidth / plot.clientWidth));
    }
    repaint();
    for (const view of Bokeh.index) {
      for (const one of view.renderer_views?.values() ?? []) one.glyph?.set_visuals?.(one.model.data_source, one.all_indices);
      view.paint?.();
    }
  };
  window.addEventListener("beforeprint", () => forPaper(true));
  window.addEventListener("afterprint", () => forPaper(false));

  // --- charts ------------------------------------------------------------------------------------------------------
  const part = (root, name) => root.renderers.find((one) => one.name === name);
  const columns = (root, name) => part(root, name).data_source;
  const put = (root, name, changed) => { const source = columns(root, name); source.data = { ...source.data, ...changed }; };
  // In a narrow window names of rows take at most a third of the width; what is left out is in the middle.
  function fitRows(root, plot) {
    const axis = root.left[0], whole = axis?.major_label_overrides ?? new Map();
    const shortened = (most) => new Map([...whole].map(([row, one]) => {
      const { text } = one;
      if (text === undefined || text.length <= most) return [row, one];
      const cut = `${text.slice(0, Math.ceil(most / 2) - 1)}…${text.slice(text.length - Math.floor(most / 2))}`;
      return [row, new one.constructor({ text: cut })];
    }));
    let before = Infinity;
    const fit = () => {
      const most = plot.clientWidth > 560 ? Infinity : Math.max(8, Math.floor(plot.clientWidth / 3 / 7.4));
      if (most !== before) axis.major_label_overrides = most === Infinity ? whole : shortened(most);
      before = most;
    };
    if (whole.size) {
      root.properties.inner_width.change.connect(fit);
      fit();
    }
  }
  const viewOf = (root) => [...Bokeh.index].find((one) => one.model === root);
  async function show(name) {
    if (!roots.has(name)) {
      const before = Bokeh.documents.length;
      await Bokeh.embed.embed_item(data.charts[name], name);
      const root = Bokeh.documents[before].roots()[0];
      roots.set(name, root);
      paint(root);
      fitRows(root, byId(name));
      viewOf(root).canvas.events_el?.removeAttribute("tabindex");
      if (root.toolbar.active_scroll) letMove(byId(name), root);
    }
    return roots.get(name);
  }

  // --- fingers and keys --------------------------------------------------------------------------------------------
  // Two fingers zoom and move: x alone where a chart is zoomed in x. Bokeh is told of the first finger only.
  const rangesOf = (root) => (root.toolbar.active_scroll.dimensions === "both" ? [root.x_range, root.y_range] : [root.x_range]);
  function letMove(plot, root) {
    const view = viewOf(root);
    if (rangesOf(root).length === 1) view.canvas.touch_action?.replace(".bk-events { touch-action: pan-y; }");
    const fingers = new Map();
    let before = null;
    const told = () => {
      const { left, top } = plot.getBoundingClientRect(), frame = view.frame.bbox;
      const [a, b] = [...fingers.values()];
      const x = ((a.clientX + b.clientX) / 2 - left - frame.left) / frame.width;
      const y = 1 - ((a.clientY + b.clientY) / 2 - top - frame.top) / frame.height;
      return { at: [x, y], apart: Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) || 1 };
    };
    const moved = (event) => {
      if (event.pointerType !== "touch" || !fingers.has(event.pointerId)) return;
      fingers.set(event.pointerId, event);
      if (!before) return;
      event.stopPropagation();
      if (fingers.size !== 2) return;
      const now = told();
      rangesOf(root).forEach((range, i) => {
        const span = range.end - range.start, held = range.start + before.at[i] * span;
        const grown = (span * before.apart) / now.apart;
        range.setv({ start: held - now.at[i] * grown, end: held + (1 - now.at[i]) * grown });
      });
      before = now;
    };
    const down = (event) => {
      if (event.pointerType !== "touch") return;
      if (fingers.size) event.stopPropagation();
      fingers.set(event.pointerId, event);
      if (fingers.size === 2) before = told();
    };
    const up = (event) => {
      const first = fingers.keys().next().value === event.pointerId;
      if (!fingers.delete(event.pointerId)) return;
      if (!first) event.stopPropagation();
      if (!fingers.size) before = null;
    };
    for (const [name, react] of [["pointerdown", down], ["pointermove", moved], ["pointerup", up], ["pointercancel", up]]) {
      plot.addEventListener(name, react, true);
    }
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight ArrowUp ArrowDown + - 0");
    const first = rangesOf(root).map((range) => [range.start, range.end]);
    plot.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowDown: [1, -1], ArrowUp: [1, 1] };
      const factor = { "+": 0.65, "-": 1 / 0.65 }[event.key];
      const ranges = rangesOf(root);
      if (event.key === "0") {
        if (graph?.levels.some((level) => level.name === plot.id)) zoom("fit");
        else ranges.forEach((range, i) => range.setv({ start: first[i][0], end: first[i][1] }));
      } else if (factor) scale(ranges, factor);
      else if (steps[event.key] && ranges[steps[event.key][0]]) {
        const range = ranges[steps[event.key][0]], by = ((range.end - range.start) / 8) * steps[event.key][1];
        range.setv({ start: range.start + by, end: range.end + by });
      } else return;
      event.preventDefault();
    });
  }
  function scale(ranges, factor) {
    for (const range of ranges) {
      const middle = (range.start + range.end) / 2, half = ((range.end - range.start) / 2) * factor;
      range.setv({ start: middle - half, end: middle + half });
    }
  }
  const clicked = (root, name, told) => {
    const source = columns(root, name);
    source.selected.properties.indices.change.connect(() => {
      const [index] = source.selected.indices;
      if (index !== undefined) { told(index); source.selected.indices = []; }
    });
  };
  const element = (tag, text, attributes = {}) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const chosenOf = (name) => Number(document.querySelector(`input[name="${name}"]:checked`).value);
  const onChoice = (name, told) => byId(name)?.addEventListener("change", () => told(chosenOf(name)));

  // --- tables ------------------------------------------------------------------------------------------------------
  function sortBy(table, column, heading) {
    const rising = heading.getAttribute("aria-sort") !== "ascending";
    for (const one of table.querySelectorAll("thead th")) one.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const keyOf = (row) => {
      const cell = row.cells[column];
      const number = Number(cell.dataset.key ?? "none");
      return Number.isNaN(number) ? cell.dataset.key ?? cell.textContent : number;
    };
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row), row]);
    rows.sort(([a], [b]) => (rising ? order(a, b) : order(b, a)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    table.querySelectorAll("thead th").forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => sortBy(table, column, heading));
    });
  }

  // --- stages under other bandwidths -------------------------------------------------------------------------------
  function showBandwidth(root, chosen) {
    const { parts, variants, proven } = data.what_if;
    const variant = variants[chosen];
    const left = variant.values.map(() => 0);
    parts.forEach((name, p) => {
      const right = left.map((from, s) => from + variant.values[s][p]);
      put(root, name, { left: [...left], right, told: variant.texts.map((row) => row[p]) });
      right.forEach((to, s) => { left[s] = to; });
    });
    const proved = chosen === proven;
    put(root, "bottleneck", { xs: [[variant.bottleneck, variant.bottleneck]] });
    put(root, "bottleneck-name", { x: [variant.bottleneck] });
    for (const name of ["bound", "bound-name"]) if (part(root, name)) part(root, name).visible = proved;
    root.x_range.end = Math.max(variant.bottleneck, data.what_if.variants[proven].bottleneck) * 1.04;
    for (const row of byId("stage-table").tBodies[0].rows) {
      const texts = variant.texts[Number(row.dataset.shown)];
      const keys = variant.ticks[Number(row.dataset.shown)];
      texts.forEach((text, p) => {
        const cell = row.cells[data.what_if.first_column + p];
        cell.textContent = text;
        cell.dataset.key = keys[p];
      });
      row.dataset.worst = String(Number(row.dataset.stage) === variant.slowest);
    }
    byId("what-if-note").textContent = variant.note;
  }

  // --- the graph ---------------------------------------------------------------------------------------------------
  const graph = data.graph;
  const tensorLine = (t, other) => {
    const tensor = graph.tensors[t];
    const line = element("li", `${tensor.name} · ${tensor.size}`);
    if (other.length) {
      line.append(tensor.crosses ? " · crosses stages" : "", element("br"));
      for (const op of other.slice(0, 12)) line.append(opButton(op), " ");
      if (other.length > 12) line.append(`and ${other.length - 12} more`);
    }
    return line;
  };
  const opButton = (op) => {
    const button = element("button", `${graph.ops.names[op]} (stage ${graph.ops.stages[op]})`, { type: "button" });
    button.addEventListener("click", () => find(op));
    return button;
  };
  function facts(rows) {
    const list = element("dl");
    for (const [name, value] of rows) list.append(element("dt", name), element("dd", value));
    return list;
  }
  function tell(parts, op) {
    const close = element("button", "×", { type: "button", class: "close", "aria-label": "Close details" });
    close.addEventListener("click", () => {
      delete byId("graph-details").dataset.op;
      mark(levelRoot(), [], false);
    });
    byId("graph-details").replaceChildren(close, ...parts);
    byId("graph-details").dataset.op = op;
    byId("graph-details").scrollTop = 0;
  }
  function tellOp(op) {
    const { names, kinds, stages, work, params } = graph.ops;
    const made = graph.tensors.map((_, t) => t).filter((t) => graph.tensors[t].producer === op);
    const read = graph.tensors.map((_, t) => t).filter((t) => graph.tensors[t].consumers.includes(op));
    const parts = [element("h3", names[op])];
    const rows = [["stage", String(stages[op])], ["work", work[op]], ["parameters", params[op]]];
    if (graph.kinds[kinds[op]]) rows.unshift(["operator", graph.kinds[kinds[op]]]);
    parts.push(facts(rows));
    for (const [title, tensors, other] of [
      ["Reads", read, (t) => [graph.tensors[t].producer]],
      ["Makes", made, (t) => graph.tensors[t].consumers],
    ]) {
      if (!tensors.length) continue;
      const list = element("ul");
      for (const t of tensors) list.append(tensorLine(t, other(t)));
      parts.push(element("b", title), list);
    }
    tell(parts, names[op]);
  }
  function tellGroup(level, g) {
    const group = level.groups[g];
    const rows = [["stage", String(group.stage)], ["ops", String(group.ops.length)], ["work", group.work], ["parameters", group.params]];
    const parts = [element("h3", group.name), facts(rows)];
    if (graph.ops_level !== null) {
      const open = element("button", "Show its ops", { type: "button" });
      open.addEventListener("click", async () => { await draw(graph.ops_level); focus(group.ops); });
      parts.push(open);
    }
    const list = element("ul");
    for (const op of group.ops.slice(0, 40)) { const line = element("li"); line.append(opButton(op)); list.append(line); }
    if (group.ops.length > 40) list.append(element("li", `and ${group.ops.length - 40} more`));
    tell([...parts, element("p"), list], "");
  }
  let drawn = null;
  const levelRoot = () => roots.get(graph.levels[drawn].name);
  const wanted = new Map();
  const narrow = 560, readable = 0.8;
  function setView(root, bounds) {
    wanted.set(root, bounds);
    const [left, top, right, bottom] = bounds;
    const width = root.inner_width || 800, height = root.inner_height || 500;
    const scale = Math.min(width / (right - left), height / (bottom - top), 1.5);
    const x = (left + right) / 2, y = (top + bottom) / 2;
    root.x_range.setv({ start: x - width / scale / 2, end: x + width / scale / 2 });
    root.y_range.setv({ start: y + height / scale / 2, end: y - height / scale / 2 });
  }
  // A box no higher than the graph takes, so that small ones leave no empty paper, nor than the window.
  function fitHeight(root, plot, [left, top, right, bottom]) {
    const width = plot.clientWidth, most = Math.max(420, Math.min(800, window.innerHeight * (width > narrow ? 0.86 : 0.62)));
    const scale = width > narrow ? Math.min(width / (right - left), 1.5) : Math.min(1.1, Math.max(readable, most / (bottom - top)));
    root.height = Math.round(Math.min(most, Math.max(220, (bottom - top) * scale)));
    plot.style.minHeight = `${root.height}px`;
  }
  // A narrow window begins at the first ops, in a size that can be read: a finger moves on.
  function showFirst(root, [left, top, right, bottom]) {
    const width = root.inner_width || 800, height = root.inner_height || 500;
    const fill = Math.min(1.1, Math.max(readable, height / (bottom - top)));
    if (width > narrow || width / (right - left) >= fill) {
      setView(root, [left, top, right, bottom]);
      wanted.delete(root);
      return;
    }
    root.x_range.setv({ start: left, end: left + width / fill });
    root.y_range.setv({ start: top + height / fill, end: top });
  }
  function fitText(root) {
    const scale = (root.inner_width || 800) / Math.abs(root.x_range.end - root.x_range.start);
    for (const name of ["labels", "labels-light", "sizes"]) {
      const one = part(root, name);
      if (!one) continue;
      const pixels = (name === "sizes" ? 11 : 12) * scale;
      one.visible = pixels >= 5.5;
      one.glyph.text_font_size = { value: `${Math.min(pixels, 18).toFixed(1)}px` };
    }
    part(root, "boxes").glyph.line_width = { value: scale > 0.35 ? 0.8 : 0.5 };
  }
  async function draw(number) {
    if (drawn === number) return;
    drawn = number;
    graph.levels.forEach((level, l) => { byId(level.name).hidden = l !== number; });
    document.querySelectorAll('input[name="graph-level"]').forEach((one, l) => { one.checked = l === number; });
    const level = graph.levels[number];
    const first = !roots.has(level.name);
    const root = await show(level.name);
    if (!first) return;
    fitHeight(root, byId(level.name), level.bounds);
    const fit = () => {
      if (wanted.has(root)) setView(root, wanted.get(root));
      else showFirst(root, level.bounds);
      fitText(root);
    };
    root.x_range.change.connect(() => fitText(root));
    for (const property of [root.properties.inner_width, root.properties.inner_height]) property.change.connect(fit);
    fit();
    clicked(root, "boxes", (index) => {
      if (number === graph.ops_level) tellOp(level.order[index]);
      else tellGroup(level, index);
      mark(root, [index], false);
    });
  }
  function mark(root, boxes, move) {
    const { left, right, top, bottom } = columns(root, "boxes").data;
    const take = (column, grown) => boxes.map((b) => column[b] + grown);
    put(root, "marks", { left: take(left, -5), right: take(right, 5), top: take(top, -5), bottom: take(bottom, 5) });
    if (move && boxes.length) {
      const room = boxes.length === 1 ? 330 : 40;
      const least = (column) => boxes.reduce((found, b) => Math.min(found, column[b]), Infinity);
      const most = (column) => boxes.reduce((found, b) => Math.max(found, column[b]), -Infinity);
      setView(root, [least(left) - room, least(top) - room / 2, most(right) + room, most(bottom) + room / 2]);
    }
  }
  const boxOf = graph && graph.ops_level !== null ? new Map(graph.levels[graph.ops_level].order.map((op, box) => [op, box])) : null;
  const focus = (ops) => mark(levelRoot(), ops.map((op) => boxOf.get(op)), true);
  async function find(op) {
    if (graph.ops_level !== null) { await draw(graph.ops_level); focus([op]); }
    tellOp(op);
  }
  function search(text) {
    const wanted = text.trim().toLowerCase();
    const found = [];
    if (wanted) graph.ops.names.forEach((name, op) => { if (name.toLowerCase().includes(wanted)) found.push(op); });
    byId("graph-matches").textContent = wanted ? `${found.length} of ${graph.ops.names.length}` : "";
    const lines = found.slice(0, 50).map((op) => {
      const line = element("li"), button = opButton(op);
      button.addEventListener("click", () => byId("graph-found").replaceChildren());
      line.append(button);
      return line;
    });
    byId("graph-found").replaceChildren(...lines);
  }
  function zoom(how) {
    const root = levelRoot();
    if (how === "fit") { setView(root, graph.levels[drawn].bounds); return; }
    scale([root.x_range, root.y_range], how === "in" ? 0.65 : 1 / 0.65);
  }

  // --- cells of a table of certificates ----------------------------------------------------------------------------
  function showCell(root, index) {
    const cell = data.cells[index];
    const rows = cell.names.map((_, i) => i), zero = rows.map(() => 0);
    put(root, "rungs", { left: zero, right: cell.values, top: rows.map((i) => i - 0.02), bottom: rows.map((i) => i + 0.36),
      fill: cell.fills, told: cell.texts, name: cell.names });
    put(root, "rung-names", { x: zero, y: rows.map((i) => i - 0.24), text: cell.names.map((name, i) => `${name}: ${cell.texts[i]}`) });
    const upper = cell.upper === null ? [] : [cell.upper];
    put(root, "upper", { xs: upper.map((x) => [x, x]), ys: upper.map(() => [-1.3, cell.names.length - 0.5]) });
    put(root, "upper-name", { x: upper, y: upper.map(() => -0.95), text: upper.map(() => cell.upper_text) });
    root.x_range.end = Math.max(...upper, ...cell.values, 0) * 1.04 || 1;
    root.below[0].axis_label = cell.unit;
    byId("ladder-title").textContent = cell.title;
    byId("ladder-title").dataset.cell = String(index);
    for (const row of byId("cell-table").tBodies[0].rows) row.dataset.chosen = String(Number(row.dataset.cell) === index);
  }

  // --- start -------------------------------------------------------------------------------------------------------
  for (const name of Object.keys(data.charts)) {
    if (!graph?.levels.some((level) => level.name === name)) await show(name);
  }
  if (data.gantt) {
    const others = ["in-flight"].filter((name) => roots.has(name)).map((name) => roots.get(name));
    schedule({ shown: data.gantt, root: roots.get("gantt"), others, part, put, columns, element, byId });
  }
  // As many rows as before, whose texts are empty where there is no room: BokehJS may draw old rows with new colours.
  for (const { chart, part: named, widths, text } of data.fitting ?? []) {
    const root = roots.get(chart);
    const name = () => {
      const scale = (root.inner_width || 800) / Math.abs(root.x_range.end - root.x_range.start);
      put(root, named, { text: text.map((one, i) => (widths[i] * scale > 7 * one.length + 4 ? one : "")) });
    };
    root.x_range.change.connect(name);
    root.properties.inner_width.change.connect(name);
    name();
  }
  if (data.what_if) onChoice("what-if", (chosen) => showBandwidth(roots.get("stages"), chosen));
  if (graph) {
    await draw(chosenOf("graph-level"));
    onChoice("graph-level", draw);
    byId("graph-search").addEventListener("input", (event) => search(event.target.value));
    byId("graph-search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") byId("graph-found").querySelector("button")?.click();
      if (event.key === "Escape") byId("graph-found").replaceChildren();
    });
    document.querySelectorAll(".zoom button").forEach((one) => one.addEventListener("click", () => zoom(one.dataset.zoom)));
  }
  if (data.cells) {
    const ladder = roots.get("ladder");
    showCell(ladder, data.first_cell);
    if (roots.has("cells")) clicked(roots.get("cells"), "cells", (index) => showCell(ladder, index));
    for (const row of byId("cell-table").tBodies[0].rows) {
      row.tabIndex = 0;
      row.addEventListener("click", () => showCell(ladder, Number(row.dataset.cell)));
      row.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        showCell(ladder, Number(row.dataset.cell));
      });
    }
  }
  document.documentElement.dataset.ready = "true";
})();
