// Schedules over time: numbers of micro-batches where there is room, transfers behind a switch, and time zoomed by buttons.
function schedule({ shown, root, others, part, put, columns, element, byId }) {
  const NARROW = 700, LEAST = 4, LONGEST = 8, ROOM = 2, STEP = 0.3, UPRIGHT = 8.5, TALLEST = 20;
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "10px system-ui, sans-serif";
  const widths = new Map();
  const widthOf = (text) => {
    if (!widths.has(text)) widths.set(text, pen.measureText(text).width + ROOM);
    return widths.get(text);
  };
  const range = root.x_range;

  // A pass has its name where that fits, its micro-batch alone where there is less room, turned where there is still less.
  function write() {
    const { left, right, top, bottom, label, pass } = columns(root, "passes").data;
    const scale = (root.inner_width || 800) / Math.abs(range.end - range.start);
    const x = [], y = [], text = [], angle = [];
    let narrowest = Infinity;
    for (let i = 0; i < label.length; i++) {
      if (label[i] === "" || right[i] < range.start || left[i] > range.end) continue;
      const start = Math.max(left[i], range.start), end = Math.min(right[i], range.end);
      const room = (end - start) * scale;
      narrowest = Math.min(narrowest, room);
      const named = pass[i].length <= LONGEST && widthOf(pass[i]) + 2 * ROOM <= room;
      const turned = !named && widthOf(label[i]) > room;
      if (turned && (room < UPRIGHT || widthOf(label[i]) > TALLEST)) continue;
      x.push((start + end) / 2);
      y.push((top[i] + bottom[i]) / 2);
      text.push(named ? pass[i] : label[i]);
      angle.push(turned ? Math.PI / 2 : 0);
    }
    put(root, "micro-batches", { x, y, text, angle });
    part(root, "passes").glyph.line_width = { value: narrowest < LEAST ? 0 : 0.5 };
  }
  function show(start, end) {
    const length = Math.min(end - start, shown.end);
    const from = Math.min(Math.max(start, 0), shown.end - length);
    for (const one of [root, ...others]) one.x_range.setv({ start: from, end: from + length });
  }
  const actions = {
    "+": ["zoom in", (start, end) => show(start + (end - start) * STEP, end - (end - start) * STEP)],
    "−": ["zoom out", (start, end) => show(start - (end - start) * 0.75, end + (end - start) * 0.75)],
    "←": ["earlier", (start, end) => show(start - (end - start) / 2, end - (end - start) / 2)],
    "→": ["later", (start, end) => show(start + (end - start) / 2, end + (end - start) / 2)],
    All: ["the whole iteration", () => show(0, shown.end)],
  };
  const buttons = element("div", undefined, { class: "zoom", role: "group", "aria-label": "Time shown" });
  for (const [sign, [name, act]] of Object.entries(actions)) {
    const button = element("button", sign, { type: "button", title: name, "data-time": name });
    if (sign !== "All") button.append(element("span", ` ${name}`, { class: "spoken" }));
    button.addEventListener("click", () => act(range.start, range.end));
    buttons.append(button);
  }
  const controls = element("div", undefined, { class: "controls" });
  const seen = element("p", "", { class: "note", role: "status", id: "gantt-shown" });
  function fold(open) {
    const count = shown.rows + (open ? shown.channels : 0);
    root.y_range.setv({ start: count - 0.5, end: -0.5 });
    root.height = shown.room + shown.row * count;
    byId("gantt").style.minHeight = `${root.height}px`;
  }
  if (shown.channels) {
    const box = element("input", undefined, { type: "checkbox", id: "gantt-transfers", autocomplete: "off" });
    const label = element("label", undefined, { class: "switch" });
    label.append(box, ` Transfers `, element("small", shown.channels === 1 ? "1 channel" : `${shown.channels} channels`));
    box.addEventListener("change", () => fold(box.checked));
    controls.append(label);
  }
  controls.append(buttons, seen);
  byId("gantt").before(controls);
  const tell = () => {
    const whole = range.end - range.start >= shown.end * 0.9999;
    const text = (value) => Number(value.toPrecision(4)).toLocaleString("en");
    seen.textContent = whole ? "" : `shown: ${text(range.start)} to ${text(range.end)} ${shown.unit} of ${text(shown.end)} ${shown.unit}`;
  };
  let linking = false;
  for (const one of [root, ...others]) {
    one.x_range.bounds = [0, shown.end];
    one.x_range.change.connect(() => {
      if (linking) return;
      linking = true;
      for (const other of [root, ...others]) if (other !== one) other.x_range.setv({ start: one.x_range.start, end: one.x_range.end });
      linking = false;
      write();
      tell();
    });
  }
  // On a narrow screen rows have their short names, which leave room for the passes.
  const axis = root.left[0], long = axis.major_label_overrides;
  const short = new Map(shown.short.map((text, i) => [i, text]));
  const fit = () => {
    const wanted = window.innerWidth < NARROW ? short : long;
    if (axis.major_label_overrides !== wanted) axis.major_label_overrides = wanted;
    write();
  };
  root.properties.inner_width.change.connect(fit);
  fit();
}
