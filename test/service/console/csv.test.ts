import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { csvLine } from '../../../src/service/console/csv.js'
import { anyCharacter } from '../../support/any-character.js'

const SIGNS = [...';=+-@＝＋－＠\t\r\n\'",']
const NUMBER = /^-?\d+(\.\d+)?$/

test.each<[cell: string | number | null | undefined, text: string]>([
  ['plain', 'plain'],
  ['', ''],
  [null, ''],
  [undefined, ''],
  [7, '7'],
  [-7, '-7'],
  ['-7.5', '-7.5'],
  ['a,b', '"a,b"'],
  ['say "x"', '"say ""x"""'],
  ['two\nlines', '"two\nlines"'],
  ['=1+1', "'=1+1"],
  ['+49', "'+49"],
  ['-x', "'-x"],
  ['--7', "'--7"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', "'\t=1"],
  ['\r=1', '"\'\r=1"'],
  ['=HYPERLINK("http://x","y")', '"\'=HYPERLINK(""http://x"",""y"")"'],
  ['a=b', 'a=b'],
  ['\ta', "'\ta"],
  ['\ra', '"\'\ra"'],
  ['＝1+1', "'＝1+1"],
  ['＋1', "'＋1"],
  ['－1', "'－1"],
  ['＠SUM(A1)', "'＠SUM(A1)"],
  ['a＝b', 'a＝b'],
  // The apostrophe is where the cell begins for a spreadsheet that takes the semicolon for a separator.
  [';=1+1', ";'=1+1"],
  ['a;=1+1;b;@x', "a;'=1+1;b;'@x"],
  [';;＝1', ";;'＝1"],
  ['a; b', 'a; b'],
  ['a\n=1', '"a\n\'=1"'],
])('%j', (cell, text) => expect(csvLine([cell])).toBe(`${text}\r\n`))

test('whatever the cells are, they are read again, and none begins a formula in any spreadsheet', () => {
  const cell = fc.string({ unit: fc.oneof(anyCharacter, fc.constantFrom(...SIGNS)), maxLength: 8 })
  fc.assert(
    fc.property(fc.array(cell, { minLength: 1, maxLength: 5 }), (cells) => {
      const [read] = parse(csvLine(['x', ...cells])) as string[][]
      const [, ...texts] = read ?? []
      const plain = (each: string) => each.replaceAll("'", '')
      expect(texts.map(plain)).toEqual(cells.map(plain))
      for (const each of texts.flatMap((text) => (NUMBER.test(text) ? [] : text.split(';'))))
        expect(each).toMatch(/^([^=+\-@＝＋－＠\t\r]|$)/)
    }),
  )
})
