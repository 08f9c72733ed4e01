"use strict";
// Each chart can be saved as SVG and PNG, each table as CSV: all that is needed is in the page.
(() => {
  const SPACE = "http://www.w3.org/2000/svg";
  const MARGIN = 10;
  const NOT_DRAWN = ".save, .spoken, .controls, aside, button, input, label, script, style";
  const made = (tag, attributes, parent) => {
    const one = document.createElementNS(SPACE, tag);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    parent?.append(one);
    return one;
  };
  const seen = (colour) => Boolean(colour) && colour !== "transparent" && !/^rgba.*,\s*0\)$/.test(colour);

  // --- charts ------------------------------------------------------------------------------------------------------
  // Text, colours and places are those on the screen; charts are drawn anew as vectors.
  // Controls leave no gap: they are taken out while places are read.
  function svgOf(figure) {
    const controls = [...figure.querySelectorAll(NOT_DRAWN)], before = controls.map((one) => one.style.display);
    for (const one of controls) one.style.display = "none";
    try { return drawnOf(figure); } finally { controls.forEach((one, i) => { one.style.display = before[i]; }); }
  }
  function drawnOf(figure) {
    const parts = [...(figure.matches(".graph") ? figure.querySelectorAll(".legend, .plots") : figure.children)];
    // Diagrams in vectors may be wider than the window, which scrolls them.
    const drawn = parts.filter((one) => !one.matches(NOT_DRAWN)).flatMap((one) => [one, ...one.querySelectorAll(":scope svg")]);
    const boxes = drawn.map((one) => one.getBoundingClientRect()).filter((one) => one.width && one.height);
    const left = Math.min(...boxes.map((one) => one.left)) - MARGIN, top = Math.min(...boxes.map((one) => one.top)) - MARGIN;
    const width = Math.ceil(Math.max(...boxes.map((one) => one.right)) + MARGIN - left);
    const height = Math.ceil(Math.max(...boxes.map((one) => one.bottom)) + MARGIN - top);
    const svg = made("svg", { xmlns: SPACE, width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
    made("title", {}, svg).textContent = titleOf(figure);
    const defs = made("defs", {}, svg);
    made("rect", { width, height, fill: getComputedStyle(document.body).backgroundColor }, svg);
    for (const one of parts) drawNode(one, { svg, defs, left, top });
    return svg;
  }
  function drawNode(node, place) {
    if (node.nodeType === Node.TEXT_NODE) return drawText(node, place);
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(NOT_DRAWN)) return undefined;
    const style = getComputedStyle(node);
    if (style.display === "none" || style.visibility === "hidden") return undefined;
    const box = node.getBoundingClientRect();
    const at = { x: box.left - place.left, y: box.top - place.top };
    if (node instanceof SVGSVGElement) return drawInline(node, at, box, place);
    drawPaper(style, at, box, place);
    const view = node.matches(".plot") && [...Bokeh.index].find((one) => node.contains(one.el));
    if (view) {
      const drawn = view.export("svg").ctx.get_svg();
      for (const [key, value] of Object.entries({ ...at, overflow: "hidden" })) drawn.setAttribute(key, value);
      place.svg.append(distinct(drawn, `${node.id}-`));
      return undefined;
    }
    for (const one of node.childNodes) drawNode(one, place);
    return undefined;
  }
  // Names of clips and gradients would be those of other charts of the same file.
  function distinct(drawn, prefix) {
    for (const one of drawn.querySelectorAll("[id]")) one.id = prefix + one.id;
    for (const one of drawn.querySelectorAll("*")) {
      for (const { name, value } of [...one.attributes]) {
        if (value.includes("url(#")) one.setAttribute(name, value.replaceAll("url(#", `url(#${prefix}`));
      }
    }
    return drawn;
  }
  function drawInline(node, at, box, place) {
    const copy = node.cloneNode(true), painted = ["fill", "stroke", "stroke-width", "font-family", "font-size", "font-weight", "opacity", "stroke-dasharray", "paint-order"];
    const before = [node, ...node.querySelectorAll("*")], after = [copy, ...copy.querySelectorAll("*")];
    before.forEach((one, i) => {
      const style = getComputedStyle(one);
      for (const name of painted) after[i].setAttribute(name, style.getPropertyValue(name));
    });
    for (const [key, value] of Object.entries({ ...at, width: box.width, height: box.height })) copy.setAttribute(key, value);
    place.svg.append(copy);
  }
  function drawPaper(style, { x, y }, { width, height }, place) {
    if (!width || !height) {
      const line = parseFloat(style.borderTopWidth);
      if (line && style.borderTopStyle !== "none") made("rect", { x, y, width, height: line, fill: style.borderTopColor }, place.svg);
      return;
    }
    if (seen(style.backgroundColor)) made("rect", { x, y, width, height, fill: style.backgroundColor }, place.svg);
    if (style.backgroundImage !== "none") {
      made("rect", { x, y, width, height, fill: `url(#${stripes(style.backgroundImage, place.defs)})` }, place.svg);
    }
    const sides = { Top: [x, y, width, 0], Bottom: [x, y + height, width, 0], Left: [x, y, 0, height], Right: [x + width, y, 0, height] };
    for (const [side, [sx, sy, w, h]] of Object.entries(sides)) {
      const line = parseFloat(style[`border${side}Width`]), colour = style[`border${side}Color`];
      if (!line || style[`border${side}Style`] === "none" || !seen(colour)) continue;
      const back = { Bottom: [0, line], Right: [line, 0] }[side] ?? [0, 0];
      made("rect", { x: sx - back[0], y: sy - back[1], width: w || line, height: h || line, fill: colour }, place.svg);
    }
  }
  function stripes(image, defs) {
    const name = `stripes-${[...image].reduce((sum, one) => (sum * 31 + one.codePointAt(0)) % 1_000_003, 7)}`;
    if (defs.querySelector(`#${name}`)) return name;
    const turn = Number(/(-?\d+)deg/.exec(image)?.[1] ?? 45), colours = image.match(/rgba?\([^)]*\)/g) ?? [];
    const pattern = made("pattern", { id: name, width: 6, height: 6, patternUnits: "userSpaceOnUse",
      patternTransform: `rotate(${turn - 90})` }, defs);
    if (seen(colours[0])) made("rect", { width: 6, height: 6, fill: colours[0] }, pattern);
    made("rect", { x: 3, width: 3, height: 6, fill: colours.at(-1) ?? "none" }, pattern);
    return name;
  }
  function drawText(node, place) {
    if (!node.data.trim()) return;
    const style = getComputedStyle(node.parentElement), size = parseFloat(style.fontSize), range = document.createRange();
    const lines = [];
    for (const { index, 0: word } of node.data.matchAll(/\S+/g)) {
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const box = range.getClientRects()[0];
      if (!box) continue;
      const line = lines.at(-1);
      if (line && Math.abs(line.box.top - box.top) < 2) line.words.push(word);
      else lines.push({ box, words: [word] });
    }
    for (const { box, words } of lines) {
      made("text", { x: box.left - place.left, y: box.top - place.top + (box.height - size) / 2 + size * 0.8, fill: style.color,
        "font-family": style.fontFamily, "font-size": style.fontSize, "font-weight": style.fontWeight }, place.svg).textContent = words.join(" ");
    }
  }
  const textOf = (svg) => `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;
  function pngOf(svg) {
    const url = URL.createObjectURL(new Blob([textOf(svg)], { type: "image/svg+xml" }));
    return new Promise((done, failed) => {
      const image = new Image();
      image.onload = () => {
        const canvas = document.createElement("canvas"), sharp = 2;
        canvas.width = image.naturalWidth * sharp;
        canvas.height = image.naturalHeight * sharp;
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        URL.revokeObjectURL(url);
        canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("no picture"))), "image/png");
      };
      image.onerror = () => failed(new Error("no picture"));
      image.src = url;
    });
  }

  // --- tables ------------------------------------------------------------------------------------------------------
  // As mtpp writes CSV: a text that a spreadsheet would run, or that begins with an apostrophe, gets an apostrophe before it.
  const NUMBER = /^[+-]?[\d.,]+(e[+-]?\d+)?%?$/i;
  function field(text) {
    const first = /[^\p{Z}\p{C}]/u.exec(text)?.[0].normalize("NFKC") ?? "";
    const runs = text.startsWith("'") || /^\p{Z}*\p{Cc}/u.test(text) || ("=+-@".includes(first[0] ?? " ") && !NUMBER.test(text));
    const safe = runs ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }
  const csvOf = (table) => [...table.rows].map((row) => `${[...row.cells].map((one) => field(one.textContent.trim())).join(",")}\n`).join("");

  // --- buttons -----------------------------------------------------------------------------------------------------
  function titleOf(part) {
    const heading = part.closest("section")?.querySelector("h2")?.textContent.trim();
    return [document.querySelector("h1").textContent.trim(), heading].filter(Boolean).join(": ");
  }
  function nameOf(part, ending) {
    const heading = part.closest("section")?.querySelector("h2")?.textContent ?? "";
    const own = part.id || part.querySelector(".plot:not([hidden])")?.id || "";
    const words = [document.querySelector("h1").textContent, heading, own].map((one) => one.trim().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60));
    return `${words.filter((one) => one.replaceAll("-", "")).join("-").toLowerCase()}.${ending}`;
  }
  function save(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }
  const KINDS = {
    SVG: async (part) => new Blob([textOf(svgOf(part))], { type: "image/svg+xml" }),
    PNG: (part) => pngOf(svgOf(part)),
    CSV: async (part) => new Blob([csvOf(part)], { type: "text/csv" }),
  };
  function buttons(part, kinds) {
    const line = document.createElement("p");
    line.className = "save";
    const told = part.querySelector("caption, figcaption")?.textContent.trim().slice(0, 80) || titleOf(part);
    for (const kind of kinds) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.title = `Save as ${kind}`;
      button.setAttribute("aria-label", `Save as ${kind}: ${told}`);
      button.addEventListener("click", async () => save(nameOf(part, kind.toLowerCase()), await KINDS[kind](part)));
      line.append(button);
    }
    return line;
  }
  for (const chart of document.querySelectorAll("figure, .graph")) chart.append(buttons(chart, ["SVG", "PNG"]));
  for (const table of document.querySelectorAll("table")) (table.closest(".wide") ?? table).after(buttons(table, ["CSV"]));
})();
