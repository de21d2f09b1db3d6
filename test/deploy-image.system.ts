/** The image can be built: the program builds and starts from the files that `deploy/Dockerfile` copies. Docker is not needed. */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { startNode, temporaryFolder } from './support/index.js'
import { ROOT, read } from './support/project.js'

/** The lines `COPY [--from=build] source… target` of one stage, as [source, target]. */
const copiesOf = (stage: string): readonly (readonly [string, string])[] =>
  [...stage.matchAll(/^COPY (?:--from=build )?(.+)$/gm)].flatMap(([, line = '']) => {
    const words = line.split(' ')
    const target = words.at(-1) ?? ''
    return words
      .slice(0, -1)
      .map((source) => [source, /\/$/.test(target) ? join(target, basename(source)) : target] as const)
  })

function copyAll(from: string, to: string, copies: readonly (readonly [string, string])[]): void {
  for (const [source, target] of copies) {
    mkdirSync(join(to, target, '..'), { recursive: true })
    cpSync(join(from, source), join(to, target), { recursive: true })
  }
}

test('the program builds and starts from the files that the image copies', async () => {
  const [, build = '', final = ''] = read('deploy/Dockerfile').split(/^FROM .*$/m)
  const [built, image] = [temporaryFolder(), temporaryFolder()]
  copyAll(ROOT, built, copiesOf(build))
  symlinkSync(join(ROOT, 'node_modules'), join(built, 'node_modules'))
  execFileSync(process.execPath, [join(built, 'deploy/build.mjs')], { cwd: built, stdio: 'pipe' })
  const copies = copiesOf(final).map(([source, target]) => [source.replace(/^\/app\//, ''), target] as const)
  expect(copies.map(([, target]) => target)).toContain('node_modules')
  copyAll(
    built,
    image,
    copies.filter(([, target]) => target !== 'node_modules'),
  )
  symlinkSync(join(ROOT, 'node_modules'), join(image, 'node_modules'))
  for (const words of [['--version'], ['help', 'agents'], ['run', 'image', 'a fox', '--local', '-q']]) {
    const program = join(image, 'bin/rushes.cjs')
    const { code, stderr } = await startNode([program, ...words]).ended
    expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: '' })
  }
  expect(existsSync(join(image, 'dist/console/htmx.js'))).toBe(true)
})
