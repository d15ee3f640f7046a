"use strict";
(() => {
  const run = JSON.parse(document.getElementById("run-data").textContent);
  const $ = (id) => document.getElementById(id);
  const canvas = $("globe"), pen = canvas.getContext("2d");
  const sphere = run.kind === "healpix", cells = run.cells, labels = run.weights.length;
  const codes = decode(run.codes);
  const palette = Uint32Array.from(run.palette, (hex) => {
    const n = parseInt(hex, 16);
    return (255 << 24) | ((n & 255) << 16) | (n & 0xff00) | (n >> 16);
  });
  const view = { save: 0, label: -1, zoom: 1, turn: lookFrom(run.centre), cursor: null, timer: 0, coarse: false };

  // ---- data ---------------------------------------------------------------------------------------------------
  function decode(text) {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Uint16Array(bytes.buffer);
  }
  const valueOf = (code) => (code === 0 ? 0 : Math.exp(run.low + (code - 1) * run.step));
  const values = new Float64Array(cells);
  let loaded = "";
  function load() {
    const key = view.save + "/" + view.label;
    if (key === loaded) return values;
    loaded = key;
    const start = view.save * labels * cells;
    values.fill(0);
    for (let l = 0; l < labels; l++) {
      if (view.label >= 0 && l !== view.label) continue;
      const weight = view.label >= 0 ? 1 : run.weights[l], offset = start + l * cells;
      for (let c = 0; c < cells; c++) values[c] += weight * valueOf(codes[offset + c]);
    }
    return values;
  }
  function scale() {
    const decades = Number($("colour").value);
    let low, high;
    if ($("shared").checked) { low = Math.exp(run.low); high = run.highest; }
    else { low = Infinity; high = 0; for (const v of load()) { if (v > high) high = v; if (v > 0 && v < low) low = v; } }
    if (decades === 0) return { log: false, low: 0, high };
    low = Math.max(low, high * 10 ** -decades);
    if (high < 1.5 * low) { const middle = Math.sqrt(low * high); low = middle / 1.2247; high = middle * 1.2247; }
    return { log: true, low, high };
  }
  function shade(value, s) {
    const part = s.log ? (value > 0 ? Math.log(value / s.low) / Math.log(s.high / s.low) : 0) : value / s.high;
    return Math.max(0, Math.min(255, Math.round(255 * part)));
  }

  // ---- geometry: the cell of a direction, HEALPix nested order (Górski et al. 2005) ----------------------------
  const spread = new Uint32Array(Math.max(run.resolution, 1));
  for (let i = 0; i < spread.length; i++) { let v = 0; for (let b = 0; b < 12; b++) v |= ((i >> b) & 1) << (2 * b); spread[i] = v; }
  function cellOf(x, y, z) {
    const n = run.resolution, za = Math.abs(z);
    let tt = Math.atan2(y, x) * 2 / Math.PI, face, ix, iy;
    if (tt < 0) tt += 4;
    if (tt >= 4) tt -= 4;
    if (za <= 2 / 3) {
      const a = n * (0.5 + tt), b = n * z * 0.75, jp = Math.floor(a - b), jm = Math.floor(a + b);
      const fp = Math.floor(jp / n), fm = Math.floor(jm / n);
      face = fp === fm ? fp | 4 : fp < fm ? fp : fm + 8;
      ix = jm & (n - 1); iy = n - (jp & (n - 1)) - 1;
    } else {
      const quarter = Math.min(3, Math.floor(tt)), part = tt - quarter, s = n * Math.sqrt(3 * (1 - za));
      const jp = Math.min(n - 1, Math.floor(part * s)), jm = Math.min(n - 1, Math.floor((1 - part) * s));
      if (z >= 0) { face = quarter; ix = n - jm - 1; iy = n - jp - 1; } else { face = quarter + 8; ix = jp; iy = jm; }
    }
    return face * n * n + spread[ix] + 2 * spread[iy];
  }
  function unit(v) { const r = Math.hypot(...v); return v.map((c) => c / r); }
  function cross(a, b) { return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]; }
  function dot(a, b) { return a.reduce((sum, c, i) => sum + c * b[i], 0); }
  function lookFrom(v) { // rows right, up, towards the viewer
    const c = unit(v), pole = Math.abs(c[2]) < 0.999 ? [0, 0, 1] : [0, 1, 0];
    const up = unit(pole.map((p, i) => p - dot(pole, c) * c[i]));
    return [cross(up, c), up, c];
  }
  function rotate(right, up) { // turn the globe under the viewer, by angles
    const [r, u, c] = view.turn;
    const c1 = unit(c.map((_, i) => c[i] - right * r[i] - up * u[i]));
    const u1 = unit(u.map((_, i) => u[i] - dot(u, c1) * c1[i]));
    view.turn = [cross(u1, c1), u1, c1];
  }

  // ---- the globe -----------------------------------------------------------------------------------------------
  const size = canvas.width, middle = size / 2, radius = 0.46 * size;
  const sheets = {};
  function sheet(n) {
    if (!sheets[n]) {
      const surface = document.createElement("canvas");
      surface.width = surface.height = n;
      const brush = surface.getContext("2d"), image = brush.createImageData(n, n);
      sheets[n] = { surface, brush, image, pixels: new Uint32Array(image.data.buffer), cells: new Int32Array(n * n), key: "" };
    }
    return sheets[n];
  }
  function findCells(s, n) {
    const key = view.turn.flat().join() + view.zoom;
    if (key === s.key) return;
    s.key = key;
    const [r, u, c] = view.turn, reach = 0.5 / 0.46 / view.zoom;
    for (let row = 0, k = 0; row < n; row++) {
      const y = (1 - 2 * (row + 0.5) / n) * reach;
      for (let column = 0; column < n; column++, k++) {
        const x = (2 * (column + 0.5) / n - 1) * reach, square = x * x + y * y;
        if (square > 1) { s.cells[k] = -1; continue; }
        const z = Math.sqrt(1 - square);
        s.cells[k] = cellOf(x * r[0] + y * u[0] + z * c[0], x * r[1] + y * u[1] + z * c[1], x * r[2] + y * u[2] + z * c[2]);
      }
    }
  }
  function drawGlobe() {
    const s = scale(), data = load(), colours = new Uint32Array(cells);
    for (let c = 0; c < cells; c++) colours[c] = palette[shade(data[c], s)];
    const n = view.coarse ? size / 2 : size, page = sheet(n);
    findCells(page, n);
    for (let k = 0; k < page.cells.length; k++) page.pixels[k] = page.cells[k] < 0 ? 0 : colours[page.cells[k]];
    page.brush.putImageData(page.image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.clearRect(0, 0, size, size);
    pen.drawImage(page.surface, 0, 0, size, size);
    pen.beginPath(); pen.arc(middle, middle, radius * view.zoom, 0, 2 * Math.PI); // hides the stairs of the limb
    pen.strokeStyle = "#333"; pen.lineWidth = 2.5; pen.stroke();
    if ($("marks").checked) drawMarks();
    if (view.cursor) drawCursor(view.cursor);
  }
  function project(v) {
    const [r, u, c] = view.turn, k = radius * view.zoom;
    return [middle + k * dot(v, r), middle - k * dot(v, u), dot(v, c)];
  }
  function line(points, colour, width, dash) {
    pen.strokeStyle = colour; pen.lineWidth = width; pen.setLineDash(dash || []);
    pen.beginPath();
    let down = false;
    for (const v of points) {
      const [x, y, z] = project(v);
      if (z < 0) { down = false; continue; }
      if (down) pen.lineTo(x, y); else pen.moveTo(x, y);
      down = true;
    }
    pen.stroke(); pen.setLineDash([]);
  }
  function circleOf(a, b, height = 0, pole = [0, 0, 0]) {
    const r = Math.sqrt(1 - height * height);
    return Array.from({ length: 181 }, (_, i) => {
      const t = i * Math.PI / 90;
      return [0, 1, 2].map((k) => r * (Math.cos(t) * a[k] + Math.sin(t) * b[k]) + height * pole[k]);
    });
  }
  function text(words, x, y, colour, font) {
    pen.font = font || "600 15px system-ui, sans-serif"; pen.lineWidth = 3.5; pen.strokeStyle = "#000c"; pen.lineJoin = "round";
    pen.strokeText(words, x, y); pen.fillStyle = colour; pen.fillText(words, x, y);
  }
  function point(v, name, colour, shape) {
    const [x, y, z] = project(v);
    if (z < 0) return;
    pen.beginPath();
    if (shape === "square") pen.rect(x - 9, y - 9, 18, 18); else pen.arc(x, y, 6.5, 0, 2 * Math.PI);
    pen.fillStyle = colour; pen.fill(); pen.lineWidth = 1.5; pen.strokeStyle = "#000"; pen.stroke();
    if (shape === "square") text(name, x - 14 - pen.measureText(name).width, y + 16, colour); else text(name, x + 10, y - 8, colour);
  }
  function drawMarks() {
    for (let d = -60; d <= 60; d += 30) line(circleOf([1, 0, 0], [0, 1, 0], Math.sin(d * Math.PI / 180), [0, 0, 1]), "#fff5", 1);
    for (let d = 0; d < 180; d += 30) { const t = d * Math.PI / 180; line(circleOf([Math.cos(t), Math.sin(t), 0], [0, 0, 1]), "#fff5", 1); }
    ["x₁", "x₂", "x₃"].forEach((name, i) => [1, -1].forEach((sign) => {
      const v = [0, 0, 0]; v[i] = sign;
      const [x, y, z] = project(v);
      if (z > 0.05) { pen.fillStyle = "#fff"; pen.fillRect(x - 1.5, y - 1.5, 3, 3); text((sign > 0 ? "+" : "−") + name, x + 5, y + 17, "#fff", "13px system-ui, sans-serif"); }
    }));
    if (run.limit && run.limit.length === 2) { line(circleOf(run.limit[0], run.limit[1]), "#000", 5); line(circleOf(run.limit[0], run.limit[1]), "#fff", 2.5); }
    run.clusters[view.save].forEach((cluster) => {
      const [x, y, z] = project(cluster.direction);
      if (z < 0) return;
      const r = Math.max(14, radius * view.zoom * Math.sin(Math.min(cluster.width, Math.PI / 2)));
      for (const [colour, width] of [["#000", 4], ["#fff", 1.8]]) { pen.beginPath(); pen.arc(x, y, r, 0, 2 * Math.PI); pen.strokeStyle = colour; pen.lineWidth = width; pen.setLineDash([6, 4]); pen.stroke(); pen.setLineDash([]); }
    });
    for (const v of run.value_vectors) for (const sign of [1, -1]) point(v.map((c) => sign * c), (sign > 0 ? "+" : "−") + "v", "#e69f00", "square");
    if (run.limit && run.limit.length === 1) for (const sign of [1, -1]) point(run.limit[0].map((c) => sign * c), (sign > 0 ? "+" : "−") + "e", "#fff");
  }
  function drawCursor(v) {
    const [x, y, z] = project(v);
    if (z < 0) return;
    for (const [colour, width] of [["#000", 4], ["#fff", 1.5]]) {
      pen.strokeStyle = colour; pen.lineWidth = width; pen.beginPath();
      pen.moveTo(x - 11, y); pen.lineTo(x - 3, y); pen.moveTo(x + 3, y); pen.lineTo(x + 11, y);
      pen.moveTo(x, y - 11); pen.lineTo(x, y - 3); pen.moveTo(x, y + 3); pen.lineTo(x, y + 11); pen.stroke();
    }
  }

  // ---- the circle ----------------------------------------------------------------------------------------------
  const frame = { left: 72, right: size - 14, top: 34, bottom: size - 52 };
  const turnOf = (v) => Math.atan2(v[1], v[0]) / (2 * Math.PI);
  const start = run.limit && run.limit.length === 1 && !sphere ? turnOf(run.limit[0]) - 0.25 : 0;
  const place = (turn) => frame.left + (((turn - start) % 1) + 1) % 1 * (frame.right - frame.left);
  function drawCircle() {
    const s = scale(), data = load();
    const top = s.log ? Math.log(s.high * 2) : s.high * 1.05, low = s.log ? Math.log(s.low) : 0;
    const height = (v) => frame.bottom - (Math.max(low, s.log ? (v > 0 ? Math.log(v) : low) : v) - low) / (top - low) * (frame.bottom - frame.top);
    pen.fillStyle = "#fff"; pen.fillRect(0, 0, size, size);
    pen.font = "14px system-ui, sans-serif"; pen.textAlign = "right";
    for (const tick of ticksOf(s)) {
      const y = height(tick.value);
      pen.strokeStyle = "#ddd"; pen.lineWidth = 1; pen.beginPath(); pen.moveTo(frame.left, y); pen.lineTo(frame.right, y); pen.stroke();
      pen.fillStyle = "#333"; pen.fillText(tick.name, frame.left - 7, y + 5);
    }
    pen.textAlign = "center";
    for (let d = 0; d < 360; d += 45) pen.fillText(d + "°", place(d / 360 + 1e-9), frame.bottom + 20);
    pen.fillText("angle from x₁ towards x₂", (frame.left + frame.right) / 2, frame.bottom + 42);
    pen.textAlign = "left"; pen.fillText("probability per radian" + (s.log ? ", logarithmic" : ", linear"), 8, 18);
    if ($("marks").checked) {
      const named = [...(run.limit && run.limit.length === 1 ? [[run.limit[0], "e", "#000"]] : []), ...run.value_vectors.map((v) => [v, "v", "#a06a00"])];
      for (const [v, name, colour] of named) for (const sign of [1, -1]) {
        const x = place(turnOf(v.map((c) => sign * c)));
        pen.strokeStyle = colour; pen.setLineDash(name === "e" ? [3, 4] : [9, 4]); pen.beginPath(); pen.moveTo(x, frame.top); pen.lineTo(x, frame.bottom); pen.stroke(); pen.setLineDash([]);
        pen.fillStyle = colour; pen.fillText((sign > 0 ? "+" : "−") + name, x + 4, frame.top + (name === "e" ? 12 : 30));
      }
    }
    pen.strokeStyle = "#0072b2"; pen.lineWidth = 2.2; pen.beginPath();
    const first = Math.floor((((start % 1) + 1) % 1) * cells);
    for (let i = 0; i < cells; i++) {
      const c = (first + i) % cells, x = frame.left + (i + 0.5) / cells * (frame.right - frame.left), y = height(data[c]);
      if (i) pen.lineTo(x, y); else pen.moveTo(x, y);
    }
    pen.stroke();
    if (view.cursor) {
      const x = place(turnOf(view.cursor));
      pen.strokeStyle = "#d55e00"; pen.lineWidth = 1.5; pen.beginPath(); pen.moveTo(x, frame.top); pen.lineTo(x, frame.bottom); pen.stroke();
    }
  }

  // ---- words beside the picture --------------------------------------------------------------------------------
  const short = (v) => (v === 0 ? "0" : v >= 0.01 && v < 1e4 ? String(Number(v.toPrecision(3))) : v.toExponential(2).replace("-", "−"));
  function ticksOf(s) {
    if (!s.log) return [0, 0.25, 0.5, 0.75, 1].map((part) => ({ part, value: part * s.high, name: short(part * s.high) }));
    const range = Math.log10(s.high / s.low);
    if (range < 1.2) return [0, 0.5, 1].map((part) => { const value = s.low * (s.high / s.low) ** part; return { part, value, name: short(value) }; });
    const step = Math.max(1, Math.ceil(range / 6)), found = [];
    for (let p = Math.ceil(Math.log10(s.low) - 1e-9); p <= Math.log10(s.high) + 1e-9; p += step) {
      found.push({ part: (p - Math.log10(s.low)) / range, value: 10 ** p, name: p >= -2 && p <= 3 ? String(Number((10 ** p).toPrecision(2))) : "1e" + String(p).replace("-", "−") });
    }
    return found;
  }
  function describeScale() {
    const s = scale(), bar = $("bar"), ticks = $("ticks");
    bar.hidden = ticks.hidden = !sphere;
    bar.style.background = "linear-gradient(to right," + Array.from({ length: 17 }, (_, i) => "#" + run.palette[Math.min(255, i * 16)]).join() + ")";
    ticks.replaceChildren(...ticksOf(s).map((tick) => { const e = document.createElement("span"); e.style.left = 100 * tick.part + "%"; e.textContent = tick.name; return e; }));
    let below = 0;
    for (const v of load()) if (v < s.low) below++;
    $("legend").textContent = (sphere ? "probability " + run.unit + (s.log ? ", logarithmic" : ", linear") : "") +
      (s.log && below ? (sphere ? "; " : "") + (100 * below / cells).toPrecision(2) + " % of the " + (sphere ? "sphere" : "circle") + " lies below " + short(s.low) + " and is drawn at the end of the scale" : "");
  }
  function describe(v) {
    const cell = sphere ? cellOf(...v) : Math.floor((((turnOf(v) % 1) + 1) % 1) * cells) % cells, value = load()[cell];
    const where = sphere
      ? "longitude " + (Math.atan2(v[1], v[0]) * 180 / Math.PI).toFixed(1) + "°, latitude " + (Math.asin(v[2]) * 180 / Math.PI).toFixed(1) + "°"
      : "angle " + ((((turnOf(v) % 1) + 1) % 1) * 360).toFixed(1) + "°";
    const uniform = 1 / (sphere ? 4 * Math.PI : 2 * Math.PI);
    $("value").textContent = "Cell " + cell + ": " + short(value) + " " + run.unit + ", " + short(value / uniform) + " times uniform; mass in the cell " +
      short(value / uniform / cells) + ". x = (" + v.map((c) => c.toFixed(3)).join(", ").replaceAll("-", "−") + "), " + where.replaceAll("-", "−") + ".";
  }
  function describeClusters() {
    const found = run.clusters[view.save];
    const items = found.map((c) => Math.round(1000 * c.mass) / 10 + " % of the mass near (" + c.direction.map((x) => x.toFixed(2)).join(", ").replaceAll("-", "−") + "), half of that within " + (c.width * 180 / Math.PI).toFixed(1) + "°");
    $("clusters").textContent = (found.length ? "Clusters now (of the content, all labels): " : "No cluster at this time") + items.join("; ") + ".";
    if (labels === 1) $("clusters").textContent = $("clusters").textContent.replace(" (of the content, all labels)", "");
  }
  function draw() {
    if (sphere) drawGlobe(); else drawCircle();
    const time = "t = " + Number(run.times[view.save].toPrecision(4));
    $("time-value").textContent = time;
    $("time").setAttribute("aria-valuetext", time);
    $("label-value").textContent = view.label < 0 ? "all: the content marginal" : "ξ = " + Number(run.labels[view.label].toPrecision(4));
    $("label").setAttribute("aria-valuetext", $("label-value").textContent);
    describeScale(); describeClusters();
    if (view.cursor) describe(view.cursor);
    canvas.setAttribute("aria-label", "Density at " + time + (labels > 1 ? ", label " + $("label-value").textContent : "") + ". " + $("clusters").textContent);
  }
  let waiting = false;
  function later() { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); } }

  // ---- controls ------------------------------------------------------------------------------------------------
  function show(save) { view.save = Math.max(0, Math.min(run.times.length - 1, save)); $("time").value = view.save; later(); }
  function play(on) {
    clearInterval(view.timer);
    view.timer = 0;
    $("play").textContent = on ? "❚❚ Pause" : "▶ Play";
    $("play").setAttribute("aria-pressed", String(on));
    if (!on) return;
    if (view.save === run.times.length - 1) show(0);
    view.timer = setInterval(() => { if (view.save === run.times.length - 1) play(false); else show(view.save + 1); }, 350);
  }
  $("time").max = run.times.length - 1;
  $("time").addEventListener("input", (event) => { play(false); show(Number(event.target.value)); });
  $("play").addEventListener("click", () => play(!view.timer));
  $("label").max = labels - 1;
  $("label-row").hidden = labels === 1;
  $("label").addEventListener("input", (event) => { view.label = Number(event.target.value); later(); });
  for (const id of ["colour", "shared", "marks"]) $(id).addEventListener("change", later);
  function button(name, words, action) {
    const b = document.createElement("button");
    b.type = "button"; b.textContent = name; b.setAttribute("aria-label", words); b.title = words;
    b.addEventListener("click", () => { action(); later(); });
    $("views").append(b);
  }
  const zoom = (factor) => { view.zoom = Math.max(1, Math.min(40, view.zoom * factor)); };
  if (sphere) {
    const from = [...(run.limit && run.limit.length === 1 ? [["e", run.limit[0]]] : []), ["x₁", [1, 0, 0]], ["x₂", [0, 1, 0]], ["x₃", [0, 0, 1]]];
    for (const [name, v] of from) for (const sign of [1, -1]) {
      const full = (sign > 0 ? "+" : "−") + name;
      button(full, "look from " + full, () => { view.turn = lookFrom(v.map((c) => sign * c)); });
    }
    button("⊕", "zoom in", () => zoom(1.5));
    button("⊖", "zoom out", () => zoom(1 / 1.5));
  } else { canvas.style.cursor = "crosshair"; }
  $("keys").textContent = (sphere ? "Drag or use the arrow keys to turn, + and − to zoom, " : "Arrow keys move the probe, ") + "space to play, [ and ] to step in time, Enter for a value.";

  function pick(event) {
    const box = canvas.getBoundingClientRect();
    const px = (event.clientX - box.left) / box.width * size, py = (event.clientY - box.top) / box.height * size;
    if (!sphere) {
      const turn = start + Math.max(0, Math.min(0.999999, (px - frame.left) / (frame.right - frame.left)));
      return [Math.cos(2 * Math.PI * turn), Math.sin(2 * Math.PI * turn)];
    }
    const x = (px - middle) / radius / view.zoom, y = (middle - py) / radius / view.zoom, square = x * x + y * y;
    if (square > 1) return null;
    const [r, u, c] = view.turn, z = Math.sqrt(1 - square);
    return [0, 1, 2].map((i) => x * r[i] + y * u[i] + z * c[i]);
  }
  function probe(v) { view.cursor = v; if (v) describe(v); later(); }
  let grip = null;
  canvas.addEventListener("pointerdown", (event) => { grip = { x: event.clientX, y: event.clientY, moved: false }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (!grip || !sphere) return;
    const dx = event.clientX - grip.x, dy = event.clientY - grip.y;
    if (!grip.moved && Math.hypot(dx, dy) < 4) return;
    const reach = canvas.getBoundingClientRect().width * 0.46 * view.zoom;
    rotate(dx / reach, -dy / reach);
    grip = { x: event.clientX, y: event.clientY, moved: true };
    view.coarse = true; later();
  });
  const release = (event) => { if (grip && !grip.moved && event.type === "pointerup") probe(pick(event)); grip = null; if (view.coarse) { view.coarse = false; later(); } };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("keydown", (event) => {
    const step = 5 * Math.PI / 180 / Math.sqrt(view.zoom);
    const moves = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key in moves && sphere) rotate(...moves[event.key].map((m) => m * step));
    else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && !sphere) {
      const turn = (view.cursor ? turnOf(view.cursor) : start + 0.25) + (event.key === "ArrowRight" ? 1 : -1) / cells;
      probe([Math.cos(2 * Math.PI * turn), Math.sin(2 * Math.PI * turn)]);
    } else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === " ") play(!view.timer);
    else if (event.key === "[") show(view.save - 1);
    else if (event.key === "]") show(view.save + 1);
    else if (event.key === "Enter") probe(sphere ? view.turn[2] : view.cursor || [Math.cos(2 * Math.PI * (start + 0.25)), Math.sin(2 * Math.PI * (start + 0.25))]);
    else return;
    event.preventDefault(); later();
  });
  $("time").value = $("time").defaultValue = run.first;
  view.save = run.first;
  draw();
  window.tokensphere = { cellOf, valueOf, view, values: load };
})();
