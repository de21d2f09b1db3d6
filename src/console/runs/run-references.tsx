/** Reference images of a run: those of this service are shown, others are links. */
import { useState } from 'preact/hooks'
import { CONSOLE_PATHS, type RunDetails } from '../../protocol/console.js'
import { isSentImage } from '../../protocol/parameters.js'
import { isHttpUrl } from '../../protocol/parse.js'
import { printable, printableJson } from '../../protocol/text.js'
import { Icon } from '../components/icon.js'
import { Card } from '../components/page.js'
import { formatBytes } from '../format.js'
import { relativePath } from '../routes.js'
import { useSession } from '../session.js'
import { SOURCES } from './form-fields.js'
import { useRemoved } from './run-outputs.js'

export function RunReferences({ run: { id, input } }: { readonly run: RunDetails }) {
  const { base_url } = useSession()
  const sources: readonly unknown[] = Array.isArray(input[SOURCES]) ? input[SOURCES] : []
  if (sources.length === 0) return null
  return (
    <div class="run-references">
      <Card title="Reference images">
        <ol class="run-sources">
          {sources.map((source, position) => (
            <li key={`${id} ${position}`}>
              <ReferenceImage {...shownReference(source, { id, position, baseUrl: base_url })} />
            </li>
          ))}
        </ol>
      </Card>
    </div>
  )
}

interface ShownReference {
  readonly text: string
  readonly caption: string
  readonly href?: string
  /** Undefined for an image of another host: loading it would tell that host about the visit. */
  readonly picture?: string
}

interface ReferencePlace {
  readonly id: string
  readonly position: number
  readonly baseUrl: string
}

export function shownReference(source: unknown, { id, position, baseUrl }: ReferencePlace): ShownReference {
  if (isSentImage(source)) {
    const picture = relativePath(CONSOLE_PATHS.reference, { id, position })
    const caption = formatBytes(source.bytes)
    const text = `Sent with the run: ${printable(source.content_type)}, ${caption}`
    return { picture, href: picture, caption, text }
  }
  const text = printable(typeof source === 'string' ? source : printableJson(source))
  if (!isHttpUrl(source)) return { text, caption: 'Not an image' }
  if (!source.startsWith(`${baseUrl}/outputs/`)) return { text, caption: 'External link', href: source }
  const picture = source.slice(baseUrl.length + 1)
  return { text, caption: text.slice(text.lastIndexOf('/') + 1), href: picture, picture }
}

function ReferenceImage({ text, caption, href, picture }: ShownReference) {
  const [isLost, setLost] = useState(false)
  const { isRemoved } = useRemoved(picture, isLost)
  const content = (
    <>
      <span class="reference-image">
        {picture === undefined ? (
          <bdi class="reference-url">{text.replace(/^https?:\/\//, '')}</bdi>
        ) : isLost ? (
          <Icon name="image" />
        ) : (
          <img src={picture} alt="Reference" decoding="async" onError={() => setLost(true)} />
        )}
      </span>
      <bdi class="reference-caption">{isRemoved ? 'No longer stored' : caption}</bdi>
    </>
  )
  if (href === undefined || isRemoved) return <span title={text}>{content}</span>
  return (
    <a href={href} title={text} target="_blank" rel="noreferrer noopener">
      {content}
    </a>
  )
}
