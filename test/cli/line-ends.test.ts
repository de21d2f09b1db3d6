/** Texts that an editor on Windows wrote: \r\n at the ends of lines, a byte order mark at the start. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createCliService, runCli, SET, temporaryFolder } from '../support/index.js'

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
])('a prompt %j', async (text, prompt) => {
  const dry = ['run', 'image', '--dry-run']
  const [file, stdin] = [
    await runCli([...dry, '--prompt-file', fileOf(text)], { env: SET }),
    await runCli([...dry, '--prompt', '-'], { env: SET, stdin: text }),
  ]
  expect([promptOf(file.stdout), promptOf(stdin.stdout)]).toEqual([prompt, prompt])
})

it('a prompt of nothing but line ends is none', async () => {
  const { code } = await runCli(['run', 'image', '--dry-run', '--prompt-file', fileOf('\r\n')], {
    env: SET,
  })
  expect(code).toBe(2)
})

it('ids on standard input', async () => {
  const service = await createCliService()
  const { stdout } = await service.run('run image -n 2 "a fox" --no-wait')
  const ids = stdout.trim().split('\n')
  const seen = await service.run('status -', { stdin: `${MARK}${ids.join('\r\n')}\r\n\r\n` })
  expect(seen.code).toBe(0)
  expect(seen.stdout.split('\n').map((line) => line.split('\t')[0])).toEqual([...ids, ''])
})

it.each(['', MARK])('an input of JSON after %j', async (mark) => {
  const text = `${mark}{\r\n  "prompt": "a fox"\r\n}\r\n`
  for (const given of ['-', `@${fileOf(text)}`]) {
    const ran = await runCli(['run', 'model', 'a/b', '--dry-run', '--input', given], {
      env: SET,
      stdin: text,
    })
    expect(ran).toMatchObject({ code: 0 })
    expect(promptOf(ran.stdout)).toBe('a fox')
  }
})
