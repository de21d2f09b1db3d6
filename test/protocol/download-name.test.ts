/** The names of files that a browser saves. */
import { expect, test } from 'vitest'
import { downloadName, savedName } from '../../src/protocol/download-name.js'

const name = (prompt: string, more: Partial<Parameters<typeof downloadName>[0]> = {}) =>
  downloadName({ prompt, runId: 'run_7k2m9x', index: 0, fileName: 'picture.png', ...more })

test.each([
  ['a red fox in fresh snow', 'a-red-fox-in-fresh-snow-run_7k2m9x.png'],
  ['', 'run_7k2m9x.png'],
  [' \n…!? ', 'run_7k2m9x.png'],
  ['../../etc/passwd', 'etc-passwd-run_7k2m9x.png'],
  ['con', 'con-run_7k2m9x.png'],
  ['-rf .hidden: <a>|"b"*?\\', 'rf-hidden-a-b-run_7k2m9x.png'],
  ['photo\u202egnp.exe', 'photo-gnp-exe-run_7k2m9x.png'],
  ['雪の中の狐, ночь', '雪の中の狐-ночь-run_7k2m9x.png'],
  ['cafe\u0301 🦊 \u{1F468}\u200D\u{1F469}', 'café-run_7k2m9x.png'],
  [`${'word '.repeat(30)}`, `${'word-'.repeat(12)}run_7k2m9x.png`],
  ['x'.repeat(100_000), `${'x'.repeat(60)}-run_7k2m9x.png`],
  [`a${'\u{20000}'.repeat(60)}`, `a${'\u{20000}'.repeat(29)}-run_7k2m9x.png`],
])('of %j', (prompt, expected) => {
  expect(name(prompt)).toBe(expected)
  expect(savedName('picture.png', expected)).toBe(expected)
  expect(Buffer.byteLength(expected)).toBeLessThan(256)
})

test.each([
  [{ index: 1 }, 'a-fox-run_7k2m9x-2.png'],
  [{ fileName: 'film.final.mp4' }, 'a-fox-run_7k2m9x.mp4'],
  [{ fileName: 'raw' }, 'a-fox-run_7k2m9x'],
  [{ fileName: 'a.b c' }, 'a-fox-run_7k2m9x'],
  [{ runId: '../x' }, 'a-fox-___x.png'],
])('with %o', (more, expected) => expect(name('a fox', more)).toBe(expected))

test.each([
  ['picture.png', 'a-fox.png', 'a-fox.png'],
  ['picture.png', 'a-fox.exe', 'picture.png'],
  ['picture.png', '../a-fox.png', 'picture.png'],
  ['picture.png', 'a fox.png', 'picture.png'],
  ['picture.png', '.png', 'picture.png'],
  ['picture.png', `${'x'.repeat(121)}.png`, 'picture.png'],
  ['picture.png', '', 'picture.png'],
  ['picture.png', ['a.png', 'b.png'], 'picture.png'],
  ['picture.png', undefined, 'picture.png'],
  ['raw', 'a-fox', 'a-fox'],
  ['raw', 'a-fox.exe', 'raw'],
])('%s, wanted as %j, is saved as %s', (fileName, wanted, expected) =>
  expect(savedName(fileName, wanted)).toBe(expected),
)
