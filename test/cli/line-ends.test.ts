/** Texts that an editor on Windows wrote: \r\n at the ends of lines, a byte order mark at the start. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createCliService, lines, runCli, SET, temporaryFolder, usageErrorOf } from '../support/index.js'

const MARK = '\ufeff'

function fileOf(text: string): string {
  const path = join(temporaryFolder(), 'text.txt')
  writeFileSync(path, text)
  return path
}

const promptOf = (stdout: string): unknown => JSON.parse(stdout).input.prompt

it.each([
  ['a fox\r\n', 'a fox'],
  [`${MARK}a fox\r\n`, 'a fox'],
  // Between the lines it is the text of whoever wrote it.
  ['a fox\r\nin snow\r\n', 'a fox\r\nin snow'],
])('the prompt of a file or of standard input with the text %j is %j', async (text, prompt) => {
  const dry = ['run', 'image', '--dry-run']
  const [file, stdin] = [
    await runCli([...dry, '--prompt-file', fileOf(text)], { env: SET }),
    await runCli([...dry, '--prompt', '-'], { env: SET, stdin: text }),
  ]
  expect([promptOf(file.stdout), promptOf(stdin.stdout)]).toEqual([prompt, prompt])
})

it('a prompt of nothing but line ends is a usage error', async () => {
  usageErrorOf(await runCli(`run image --dry-run --prompt-file ${fileOf('\r\n')}`, { env: SET }))
})

it('ids on standard input may have a byte order mark and \\r\\n', async () => {
  const service = await createCliService()
  const ids = await service.create('-n 2')
  const { code, stdout } = await service.run('status -', { stdin: `${MARK}${ids.join('\r\n')}\r\n\r\n` })
  expect([code, lines(stdout).map((line) => line.split('\t')[0])]).toEqual([0, ids])
})

it('the JSON of --input may have a byte order mark and \\r\\n, as an argument, in a file and on standard input', async () => {
  const stdin = `${MARK}{\r\n  "prompt": "a fox"\r\n}\r\n`
  for (const input of [stdin, '-', `@${fileOf(stdin)}`]) {
    const ran = await runCli(['run', 'model', 'a/b', '--dry-run', '--input', input], { env: SET, stdin })
    expect(promptOf(ran.stdout)).toBe('a fox')
  }
})
