import { expect, test } from 'vitest'
import { isPlainName } from '../../../src/service/rules/key-terms.js'

test.each<[what: string, isPlain: boolean, names: readonly string[]]>([
  ['letters of any language', true, ['ci', 'Annas Rechner (Küche)', '北京 3', 'مفتاح', 'x'.repeat(100)]],
  ['too long, empty, or with spaces at its ends', false, ['x'.repeat(101), '', ' x', 'x\u00a0']],
  ['an emoji, alone or with a variation selector', true, ['🦊', '❤\ufe0f']],
  [
    'emoji that are joined, with a colour of skin',
    true,
    ['👩\u200d💻', '👩🏽\u200d💻 at home', '❤\ufe0f\u200d🔥'],
  ],
  ['a family, a flag', true, ['👨\u200d👩\u200d👧\u200d👦', '🇩🇪']],
  ['the joiner elsewhere', false, ['c\u200di', '\u200d', '🦊\u200d', '🦊\u200di', '🦊\u200d\u200d🦊']],
  ['control characters (Cc)', false, ['a\nb', 'a\u0085b']],
  ['a space of no width (Cf)', false, ['c\u200bi']],
  ['directions (Cf)', false, ['\u202egnp.exe', 'a\u2066b', 'a\u200fb']],
  ['a soft hyphen, a byte order mark, a tag (Cf)', false, ['a\u00adb', '\ufeffci', 'ci\u{e0041}']],
  ['half a character, private, unassigned (Cs, Co, Cn)', false, ['a\ud83e', 'a\ue000', 'a\u0378']],
  ['line and paragraph separators (Zl, Zp)', false, ['a\u2028b', 'a\u2029b']],
])('a key name with %s is accepted: %s', (_what, isPlain, names) => {
  expect(names.filter((name) => isPlainName(name) !== isPlain)).toEqual([])
})
