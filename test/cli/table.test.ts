/** Tables of a terminal. */
import { expect, it } from 'vitest'
import { createOutput, createStyle } from '../../src/cli/terminal/output.js'
import { printTable } from '../../src/cli/terminal/table.js'

type Options = Parameters<typeof printTable>[3]

const HEADER = ['ID', 'KIND', 'EMPTY', 'MODEL', 'PROMPT']
const ROWS = [
  ['run_a', 'image', '-', 'acme/still-1', 'a red fox in fresh snow under a pale winter sun'],
  ['run_bcd', 'video', '', 'acme/c', 'a boat'],
]

async function printed(columns: number | undefined, options?: Options): Promise<string> {
  let text = ''
  const stream = { isTTY: columns !== undefined, columns, write: (chunk: string) => (text += chunk) } as never
  const style = createStyle(stream, { NO_COLOR: '1' }, { color: false })
  const mode = { json: false, quiet: false, debug: false }
  const out = createOutput({ stdout: stream, stderr: stream, mode, style: { out: style, err: style } })
  await printTable(out, HEADER, ROWS, options)
  return `\n${text}`
}

it('a table in a pipe has every column, tabs, and no header', async () => {
  expect(await printed(undefined)).toBe(`\n${ROWS.map((row) => row.join('\t')).join('\n')}\n`)
})

it('a table on a terminal has no empty columns, and wraps its last one', async () => {
  expect(await printed(60)).toBe(`
ID       KIND   MODEL         PROMPT
run_a    image  acme/still-1  a red fox in fresh snow under
                              a pale winter sun
run_bcd  video  acme/c        a boat
`)
})

it('a table without room for its last column does not wrap it', async () => {
  expect(await printed(30)).toContain('  a red fox in fresh snow under a pale winter sun\n')
})

it('a table may cut its last column, which then ends with an ellipsis', async () => {
  expect(await printed(60, { isCut: true })).toContain(
    '\nrun_a    image  acme/still-1  a red fox in fresh snow under…\n',
  )
})

it.each([
  [80, 'ID KIND MODEL PROMPT'],
  // Without KIND, which is worth less than MODEL.
  [58, 'ID MODEL PROMPT'],
  // Without MODEL, KIND fits again.
  [50, 'ID KIND PROMPT'],
  [40, 'ID PROMPT'],
  [10, 'ID PROMPT'],
])('a table on a terminal of %i columns has the columns %s', async (columns, titles) => {
  const [, header] = (await printed(columns, { optional: ['MODEL', 'KIND'], isCut: true })).split('\n')
  expect(header?.split(/ +/).join(' ')).toBe(titles)
})
