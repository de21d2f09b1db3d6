import { expect, test } from 'vitest'
import { isPlainName } from '../../../src/service/rules/plain-name.js'

test.each<[name: string, isPlain: boolean]>([
  ['ci', true],
  ['Annas Rechner (Küche)', true],
  ['北京 3', true],
  ['مفتاح', true],
  ['x'.repeat(100), true],
  ['x'.repeat(101), false],
  ['', false],
  [' x', false],
  ['x\u00a0', false],
  // Emoji: alone, with a variation selector, joined, joined with a colour of skin, and a flag.
  ['🦊', true],
  ['❤\ufe0f', true],
  ['👩\u200d💻', true],
  ['👩🏽\u200d💻 at home', true],
  ['❤\ufe0f\u200d🔥', true],
  ['👨\u200d👩\u200d👧\u200d👦', true],
  ['🇩🇪', true],
  // The joiner elsewhere.
  ['c\u200di', false],
  ['\u200d', false],
  ['🦊\u200d', false],
  ['🦊\u200di', false],
  ['🦊\u200d\u200d🦊', false],
  // Cc
  ['a\nb', false],
  ['a\u0085b', false],
  // Cf: a space of no width, directions, a soft hyphen, a byte order mark, a tag
  ['c\u200bi', false],
  ['\u202egnp.exe', false],
  ['a\u2066b', false],
  ['a\u200fb', false],
  ['a\u00adb', false],
  ['\ufeffci', false],
  ['ci\u{e0041}', false],
  // Cs, Co, Cn
  ['a\ud83e', false],
  ['a\ue000', false],
  ['a\u0378', false],
  // Zl, Zp
  ['a\u2028b', false],
  ['a\u2029b', false],
])('%j: %s', (name, isPlain) => expect(isPlainName(name)).toBe(isPlain))
