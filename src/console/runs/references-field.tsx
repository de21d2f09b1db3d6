/** Form field for reference images: file chooser, paste, drag and drop, or URL. */
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { ParameterSchema } from '../../protocol/models.js'
import { valueProblem } from '../../protocol/validate.js'
import { Button } from '../components/button.js'
import { Icon } from '../components/icon.js'
import { formatBytes } from '../format.js'
import { useSession } from '../session.js'
import type { FormField } from './form-fields.js'
import {
  isTooLarge,
  moved,
  type Reference,
  referenceOfUrl,
  sourceBytes,
  urlProblem,
  urlsIn,
} from './references.js'

export interface ReferencesFieldProps {
  readonly field: FormField
  readonly references: readonly Reference[]
  readonly error: string | undefined
  readonly isReading: boolean
  readonly onChange: (change: (list: readonly Reference[]) => readonly Reference[]) => void
  /** Adds the valid files. Resolves to one sentence per file that was not added. */
  readonly onFiles: (files: readonly File[]) => Promise<readonly string[]>
}

export function ReferencesField(props: ReferencesFieldProps) {
  const { field, references, error, isReading, onChange, onFiles } = props
  const { label, isRequired, schema } = field
  const maxItems = schema.type === 'array' ? schema.maxItems : undefined
  const id = useId()
  const [problems, setProblems] = useState<readonly string[]>([])
  const [isOver, setOver] = useState(false)

  const addFiles = async (list: Iterable<File>) => {
    setProblems([])
    const found = await onFiles([...list])
    // Keep the problems of other files that were read at the same time.
    setProblems((before) => [...before, ...found])
  }
  const addUrls = (urls: readonly string[]) => {
    setProblems([])
    onChange((before) => [...before, ...urls.map(referenceOfUrl)])
  }
  const addTransferred = (transfer: DataTransfer | null) => {
    if (transfer === null) return
    if (transfer.files.length > 0) void addFiles(transfer.files)
    else addUrls(urlsIn(transfer.getData('text/uri-list') || transfer.getData('text/plain')))
  }
  useWindowDrops({ onOver: setOver, onDrop: addTransferred, onPaste: (pasted) => void addFiles(pasted) })

  const limits = [!isRequired && 'optional', maxItems !== undefined && `at most ${maxItems}`].filter(Boolean)
  const all = [...problems, ...(error === undefined ? [] : [error]), ...limitErrors(references, schema)]
  // The form has the same error for too many images after an attempt to send it.
  const errors = [...new Set(all)]
  return (
    <fieldset
      class="fieldset field"
      aria-describedby={errors.length > 0 ? `${id}-error` : undefined}
      aria-invalid={error === undefined ? undefined : true}
    >
      <legend>
        {label}
        {limits.length > 0 && <span class="optional">{limits.join(', ')}</span>}
      </legend>
      {references.length > 0 && (
        <ol class="references">
          {references.map((reference, index) => (
            <ReferenceItem
              key={reference.id}
              reference={reference}
              index={index}
              count={references.length}
              onMove={(by) => onChange((list) => moved(list, index, index + by))}
              onRemove={() => onChange((list) => list.filter((each) => each.id !== reference.id))}
            />
          ))}
        </ol>
      )}
      {isReading && (
        <p class="hint" role="status">
          Reading images
        </p>
      )}
      <div class={isOver ? 'drop-zone is-over' : 'drop-zone'}>
        <Icon name="upload" size={20} />
        <FileChooser onFiles={(files) => void addFiles(files)} />
        <UrlInput onUrl={(url) => addUrls([url])} onProblem={(problem) => setProblems([problem])} />
      </div>
      {errors.length > 0 && (
        <div class="field-error" id={`${id}-error`} role="alert">
          <Icon name="alert" size={14} />
          <span class="wrap">{errors.join(' ')}</span>
        </div>
      )}
    </fieldset>
  )
}

function FileChooser({ onFiles }: { readonly onFiles: (files: Iterable<File>) => void }) {
  const files = useRef<HTMLInputElement>(null)
  return (
    <>
      <p>
        <Button kind="ghost" size="small" class="drop-choose" onClick={() => files.current?.click()}>
          Choose images
        </Button>
        <span class="muted">or drop or paste them here: PNG, JPEG, WebP, GIF or AVIF</span>
      </p>
      <input
        ref={files}
        type="file"
        class="visually-hidden"
        accept="image/png,image/jpeg,image/webp,image/gif,image/avif"
        multiple
        tabIndex={-1}
        aria-label="Image files"
        onChange={(event) => {
          onFiles(event.currentTarget.files ?? [])
          // Without this, choosing the same file again fires no change event.
          event.currentTarget.value = ''
        }}
      />
    </>
  )
}

interface UrlInputProps {
  readonly onUrl: (url: string) => void
  /** Called with a sentence for a text that is not a URL. */
  readonly onProblem: (problem: string) => void
}

function UrlInput({ onUrl, onProblem }: UrlInputProps) {
  const [text, setText] = useState('')
  const add = () => {
    const url = text.trim()
    if (url === '') return
    const problem = urlProblem(url)
    if (problem !== undefined) {
      onProblem(problem)
      return
    }
    onUrl(url)
    setText('')
  }
  return (
    <div class="drop-url">
      <input
        class="input"
        type="url"
        inputMode="url"
        aria-label="URL of an image"
        placeholder="https://… URL of an image"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.ctrlKey || event.metaKey) return
          event.preventDefault()
          add()
        }}
      />
      <Button onClick={add}>Add URL</Button>
    </div>
  )
}

function limitErrors(references: readonly Reference[], schema: ParameterSchema): readonly string[] {
  const tooMany = valueProblem(schema, references)
  const size = formatBytes(sourceBytes(references))
  const tooLarge =
    `The images have ${size} as they are sent; a request has at most 64 MiB. ` +
    'Remove one, or give its URL.'
  return [
    ...(tooMany === undefined ? [] : [`This ${tooMany}.`]),
    ...(isTooLarge(references) ? [tooLarge] : []),
  ]
}

const SMALL = { kind: 'ghost', size: 'small' } as const

interface ReferenceItemProps {
  readonly reference: Reference
  readonly index: number
  readonly count: number
  readonly onMove: (by: number) => void
  readonly onRemove: () => void
}

function ReferenceItem({ reference, index, count, onMove, onRemove }: ReferenceItemProps) {
  const { name, bytes, isUrl } = reference
  const { base_url } = useSession()
  // Show only images of this service. Loading an image from another site would tell that site about the visit; the
  // page's Content-Security-Policy blocks it.
  const isOwn = isUrl && reference.source.startsWith(`${base_url}/`)
  const picture = isOwn ? reference.source.slice(base_url.length + 1) : reference.preview
  return (
    <li class="reference">
      <span class="thumb">
        {picture === undefined ? <Icon name="external" /> : <img src={picture} alt="" decoding="async" />}
      </span>
      <span class="reference-name">
        <bdi title={name}>{name}</bdi>
        <span class="muted">{isUrl ? 'Fetched by the service' : formatBytes(bytes)}</span>
      </span>
      <span class="row">
        {index > 0 && (
          <Button
            {...SMALL}
            icon="down"
            class="is-flipped"
            label={`Move ${name} up`}
            onClick={() => onMove(-1)}
          />
        )}
        {index < count - 1 && (
          <Button {...SMALL} icon="down" label={`Move ${name} down`} onClick={() => onMove(1)} />
        )}
        <Button {...SMALL} icon="close" label={`Remove ${name}`} onClick={onRemove} />
      </span>
    </li>
  )
}

interface Drops {
  readonly onOver: (isOver: boolean) => void
  readonly onDrop: (transfer: DataTransfer | null) => void
  readonly onPaste: (files: FileList) => void
}

/** Accepts drops on the whole page. */
function useWindowDrops(drops: Drops): void {
  const latest = useRef(drops)
  latest.current = drops
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const onDragOver = (event: DragEvent) => {
      event.preventDefault()
      latest.current.onOver(true)
    }
    const onDragLeave = (event: DragEvent) => {
      if (event.relatedTarget === null) latest.current.onOver(false)
    }
    const onDrop = (event: DragEvent) => {
      latest.current.onOver(false)
      // Let text fields handle dropped text.
      if (event.dataTransfer?.files.length === 0 && isTextField(event.target)) return
      event.preventDefault()
      latest.current.onDrop(event.dataTransfer)
    }
    const onPaste = ({ clipboardData }: ClipboardEvent) => {
      if (clipboardData !== null && clipboardData.files.length > 0)
        latest.current.onPaste(clipboardData.files)
    }
    document.addEventListener('dragover', onDragOver, { signal })
    document.addEventListener('dragleave', onDragLeave, { signal })
    document.addEventListener('drop', onDrop, { signal })
    document.addEventListener('paste', onPaste, { signal })
    return () => controller.abort()
  }, [])
}

const isTextField = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest('input, textarea') !== null
