/** docs/batch.md: its manifests are valid. Its scripts run in docs-batch.system.ts. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { entriesOf } from './batch/folder.js'

const TEXT = readFileSync(new URL('../docs/batch.md', import.meta.url), 'utf8')
const MANIFESTS = [...TEXT.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = '']) => text)

describe('docs/batch.md', () => {
  it('shows a valid manifest', async () => {
    expect((await entriesOf(MANIFESTS[0] ?? '')).map(({ name, output }) => [name, output])).toEqual([
      ['hero', 'assets/hero.mp4'],
      ['icon-fox', 'assets/icons/fox.png'],
      ['trees', 'trees.{ext}'],
      ['trees-2', 'trees-2.{ext}'],
      ['trees-3', 'trees-3.{ext}'],
    ])
  })

  it('shows a matrix that expands to the rows it names', async () => {
    const icons = MANIFESTS.find((text) => text.includes('# icons.yaml')) ?? ''
    expect((await entriesOf(icons)).map(({ name, output, input }) => [name, output, input])).toEqual([
      ...['square', 'wide'].map((size) => [
        `icon-fox-${size}`,
        `icons/fox/${size}.png`,
        {
          prompt: 'a red fox with a white tail, flat icon',
          aspect_ratio: size === 'wide' ? '16:9' : '1:1',
          quality: 'high',
        },
      ]),
      [
        'icon-bear-square',
        'icons/bear/square.png',
        { prompt: 'a brown bear, flat icon', aspect_ratio: '1:1', quality: 'high' },
      ],
    ])
  })
})
