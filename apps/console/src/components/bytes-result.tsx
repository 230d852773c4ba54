// Bytes in the form of their media type: an image, a text, or a file to save. Never a page of this origin.
import { useEffect, useMemo, useState } from 'preact/hooks';

const MOST_SHOWN = 100_000;
const IS_TEXT = /^text\/|[/+](json|xml)\b|^application\/(x-)?(ndjson|javascript)/;

export const isText = (type: string): boolean => IS_TEXT.test(type);

/** Returns a `blob:` URL of bytes. The URL lives as long as the view. */
function useBlob(bytes: Uint8Array<ArrayBuffer>, type: string): string | undefined {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, type]);
  return url;
}

interface BytesProps {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly type: string;
  /** The name of the saved file, without its ending. */
  readonly name: string;
}

export function BytesResult({ bytes, type, name }: BytesProps) {
  const image = type.startsWith('image/');
  // Only images keep their type. A browser would open a function's HTML as a page of this origin.
  const url = useBlob(bytes, image ? type : 'application/octet-stream');
  const text = useMemo(
    () => (isText(type) ? new TextDecoder().decode(bytes.subarray(0, MOST_SHOWN)) : undefined),
    [bytes, type],
  );
  return (
    <>
      {image && url !== undefined && <img class="media" src={url} alt={`The answer as ${type}`} />}
      {text !== undefined && <pre>{text}</pre>}
      <p class="buttons">
        <a class="button" href={url} download={`${name}.${type.replace(/^.*\/|;.*$/g, '') || 'bin'}`}>
          Save {bytes.length.toLocaleString('en')} bytes ({type || 'no type'})
        </a>
      </p>
    </>
  );
}
