import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { csvLine } from '../../../src/service/console/csv.js'

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
])('%j', (cell, text) => expect(csvLine([cell])).toBe(`${text}\r\n`))

test('whatever the cells are, they are read again, and none begins a formula', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 5 }), (cells) => {
      const [read] = parse(csvLine(['x', ...cells])) as string[][]
      const [, ...texts] = read ?? []
      expect(texts.map((each) => each.replace(/^'(?=[=+\-@\t\r])/, ''))).toEqual(
        cells.map((each) => each.replace(/^'(?=[=+\-@\t\r])/, '')),
      )
      for (const each of texts) expect(each).toMatch(/^(-?\d+(\.\d+)?$|[^=+\-@\t\r]|$)/)
    }),
  )
})
