// Hands out each figure as CSV, SVG and PNG. The page is whole without it.
"use strict";
(() => {
  const csv = JSON.parse(document.getElementById("data").textContent);
  const SHARP = 2; // pixels of a PNG for each unit of the picture

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  // Away from the page's style sheet a picture has the colours of its attributes: dark on white.
  const source = (figure) => new XMLSerializer().serializeToString(figure.querySelector("svg"));

  const png = (figure) => new Promise((done, fail) => {
    const box = figure.querySelector("svg").viewBox.baseVal;
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = box.width * SHARP;
      canvas.height = box.height * SHARP;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture"))), "image/png");
    };
    image.onerror = () => fail(new Error("the picture cannot be drawn"));
    // Not a blob: a page from disk has no origin that its own blobs would share.
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(source(figure));
  });

  const make = {
    csv: async (figure) => new Blob([csv[figure.id]], { type: "text/csv" }),
    svg: async (figure) => new Blob([source(figure)], { type: "image/svg+xml" }),
    png,
  };

  for (const tools of document.querySelectorAll(".tools")) {
    tools.hidden = false;
    for (const button of tools.querySelectorAll("button")) {
      button.addEventListener("click", async () => {
        const figure = button.closest("figure");
        const form = button.dataset.form;
        save(await make[form](figure), `${figure.id}.${form}`);
      });
    }
  }
})();
