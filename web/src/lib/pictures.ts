/** A chosen picture as a data URI that a template can hold; a large one is drawn smaller. */

import { templates as texts } from '../texts/english/templates';
import { fill } from '../texts/fill';

const KEPT_BYTES = 48_000;
const LARGEST_BYTES = 30_000_000;
const WIDEST = 720;
const TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

export async function pictureUri(file: File): Promise<string> {
  if (!TYPES.has(file.type) || file.size > LARGEST_BYTES) throw new Error(fill(texts.pngJpegGif, { name: file.name }));
  return file.size <= KEPT_BYTES ? uriOf(file) : uriOf(await smaller(file));
}

async function smaller(file: File): Promise<Blob> {
  const picture = await createImageBitmap(file).catch(() => {
    throw new Error(fill(texts.pictureBrowserCan, { name: file.name }));
  });
  const scale = Math.min(1, WIDEST / picture.width);
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  const drawing = canvas.getContext('2d')!;
  drawing.fillStyle = 'white'; // a JPEG has no transparency
  drawing.fillRect(0, 0, canvas.width, canvas.height);
  drawing.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((done, fail) => canvas.toBlob((made) => (made ? done(made) : fail(new Error(fill(texts.couldDrawnSmaller, { name: file.name })))), 'image/jpeg', 0.8));
}

async function uriOf(blob: Blob): Promise<string> {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return `data:${blob.type};base64,${btoa(text)}`;
}
