/** Runs the shell examples of README.md and docs/ whose lines are plain commands of `rushes`, in process, against the local service. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { namedModels } from '../src/service/models/served-model.js'
import { createCliService, LOOPBACK_URL } from './support/cli.js'
import { EXAMPLES, isPlain, plainLines, uselessEntries, withId } from './support/docs-examples.js'
import { createFamilyEngine } from './support/engines.js'
import { temporaryFolder } from './support/temporary-folder.js'

const MODELS = { image: 'acme/still-1', video: 'acme/cinema-1' }

describe('the examples of plain commands', () => {
  const examples = EXAMPLES.filter(isPlain)
  test.each(examples.map((example) => [example.title, example] as const))('%s', async (_, example) => {
    const { files = {}, before = '', scripts } = example
    const service = await createCliService({
      hasList: true,
      models: namedModels(MODELS),
      engine: createFamilyEngine(),
    })
    const folder = temporaryFolder()
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes)
    const cwd = process.cwd()
    process.chdir(folder)
    try {
      let printed = ''
      for (const script of [before, ...scripts])
        for (const words of plainLines(withId(script, printed)) ?? []) {
          const { code, stdout, stderr } = await service.run(
            words.map((word) => word.replaceAll('https://api.example.com', LOOPBACK_URL)),
            { env: { RUSHES_IMAGE_MODEL: MODELS.image, RUSHES_VIDEO_MODEL: MODELS.video } },
          )
          expect(code, `${words.join(' ')}\n${stdout}\n${stderr}`).toBe(0)
          expect(stderr).not.toMatch(/^warning: /m)
          printed += stdout
        }
    } finally {
      process.chdir(cwd)
    }
  })

  test('include more than 20, and every entry of the lists belongs to one', () => {
    expect(examples.length).toBeGreaterThan(20)
    expect(uselessEntries()).toEqual([])
  })
})
