/** Every field of a run. */
import type { ComponentChildren } from 'preact'
import type { RunDetails } from '../../protocol/console.js'
import { isHttpUrl } from '../../protocol/parse.js'
import { isSentImage } from '../../protocol/run-words.js'
import { printable, printableJson } from '../../protocol/text.js'
import { formatBytes, formatCredits, formatTime } from '../format.js'
import { linkTo } from '../routes.js'
import { type FormField, fieldsOf, labelOf, SOURCES } from './form.js'

export function RunFields({ run }: { readonly run: RunDetails }) {
  const { key, input } = run
  const parameters = Object.entries(input ?? {}).filter(([name]) => name !== 'prompt' && name !== SOURCES)
  const sources = Array.isArray(input?.[SOURCES]) ? (input[SOURCES] as readonly unknown[]) : []
  return (
    <dl class="run-fields">
      <Row name="Model">{printable(run.model)}</Row>
      {parameters.map(([name, value]) => (
        <Row key={name} name={printable(labelOf(name))}>
          <bdi>{printable(typeof value === 'string' ? value : printableJson(value))}</bdi>
        </Row>
      ))}
      {defaultsOf(run).map(({ name, label, standard }) => (
        <Row key={name} name={label}>
          {standard} <span class="muted">default</span>
        </Row>
      ))}
      {sources.length > 0 && (
        <Row name="Reference images">
          <ol class="run-sources">
            {sources.map((source, index) => (
              <li key={index}>
                <SourceText source={source} />
              </li>
            ))}
          </ol>
        </Row>
      )}
      <Row name="Price">{formatCredits(run.price)}</Row>
      <Row name="API key">
        {key ? (
          <a href={linkTo('runs', { query: { key: key.id } })} title="Runs of this key">
            <bdi>{printable(key.name)}</bdi>
          </a>
        ) : (
          'None: created in the console, or with --local'
        )}
      </Row>
      <Row name="Created">{formatTime(run.created_at)}</Row>
      <Row name="Started">{formatTime(run.started_at)}</Row>
      <Row name="Finished">{formatTime(run.finished_at)}</Row>
    </dl>
  )
}

/** What the service took for parameters that were left out. */
const defaultsOf = ({ kind, input }: RunDetails): readonly FormField[] =>
  fieldsOf(kind).filter(({ name, standard }) => standard !== undefined && !Object.hasOwn(input ?? {}, name))

function Row({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function SourceText({ source }: { readonly source: unknown }) {
  if (isSentImage(source))
    return (
      <>
        Sent with the run: {printable(source.content_type)}, {formatBytes(source.bytes)}
      </>
    )
  const text = printable(typeof source === 'string' ? source : printableJson(source))
  if (!isHttpUrl(source)) return <bdi>{text}</bdi>
  return (
    <a href={source} target="_blank" rel="noreferrer noopener">
      <bdi>{text}</bdi>
    </a>
  )
}
