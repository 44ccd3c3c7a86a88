import com.google.inject.Binder;
import com.google.inject.Module;
import com.google.inject.multibindings.MapBinder;
import io.trino.filesystem.FileEntry;
import io.trino.filesystem.FileIterator;
import io.trino.filesystem.Location;
import io.trino.filesystem.TrinoFileSystem;
import io.trino.filesystem.TrinoFileSystemFactory;
import io.trino.filesystem.local.LocalFileSystemFactory;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;

/**
 * Files of {@code file:} URIs. Trino's own local file system lists them as {@code local:}, which its Hudi connector
 * does not find below a {@code file:} folder.
 */
final class LocalTables
        implements Module
{
    @Override
    public void configure(Binder binder)
    {
        TrinoFileSystemFactory local = new LocalFileSystemFactory(Path.of("/"));
        TrinoFileSystemFactory files = identity -> listingFiles(local.create(identity));
        MapBinder.newMapBinder(binder, String.class, TrinoFileSystemFactory.class).addBinding("file").toInstance(files);
    }

    private static TrinoFileSystem listingFiles(TrinoFileSystem local)
    {
        return (TrinoFileSystem) Proxy.newProxyInstance(
                LocalTables.class.getClassLoader(),
                new Class<?>[] {TrinoFileSystem.class},
                (proxy, method, arguments) -> {
                    try {
                        Object answer = method.invoke(local, arguments);
                        return answer instanceof FileIterator entries ? asFiles(entries) : answer;
                    }
                    catch (InvocationTargetException failure) {
                        throw failure.getCause();
                    }
                });
    }

    private static FileIterator asFiles(FileIterator entries)
    {
        return new FileIterator()
        {
            @Override
            public boolean hasNext()
                    throws IOException
            {
                return entries.hasNext();
            }

            @Override
            public FileEntry next()
                    throws IOException
            {
                FileEntry entry = entries.next();
                Location location = Location.of("file:/" + entry.location().path());
                return new FileEntry(location, entry.length(), entry.lastModified(), entry.blocks());
            }
        };
    }
}
